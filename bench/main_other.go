//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: not supported on this system; it runs on Linux and macOS")
	os.Exit(1)
}
