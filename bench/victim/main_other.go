//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "victim: not supported on this system; the fault matrix needs Linux")
	os.Exit(1)
}
