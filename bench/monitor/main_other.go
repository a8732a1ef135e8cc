//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "monitor: needs Linux")
	os.Exit(1)
}
