//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench/gateway: measures on Linux only")
	os.Exit(1)
}
