//go:build race

package jsonrpc

// giant is the length of a very long text in bytes. With the detector it is still many parts of 512 KiB.
const giant = 4 << 20
