//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "sharing: not supported on this system; it reads /proc")
	os.Exit(1)
}
