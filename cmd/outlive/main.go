// Command outlive keeps MCP servers alive behind an AI client.
package main

import (
	"os"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/ops/cli"
)

func main() {
	// First of all: the keeper is this program too, and wants nothing of the rest of it.
	if child.RunKeeperIfAsked() {
		return
	}
	os.Exit(cli.Main(os.Args[1:]))
}
