// Command outlive keeps MCP servers alive behind an AI client.
package main

import (
	"os"

	"github.com/outlive-mcp/outlive/internal/ops/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
