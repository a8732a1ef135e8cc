//go:build !linux

package process

// BootID identifies this start of the machine. "": the system does not tell.
func BootID() string { return "" }
