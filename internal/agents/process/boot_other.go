//go:build !linux

package process

// BootID identifies this boot of the machine. "": not available.
func BootID() string { return "" }
