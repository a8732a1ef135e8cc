package main

import (
	"fmt"
	"os"

	"github.com/outlive-mcp/outlive/bench/faults"
)

func main() {
	faults.VictimIfAsked()
	fmt.Fprintln(os.Stderr, "victim: the fault matrix starts this program, see go run ./bench -faults")
	os.Exit(2)
}
