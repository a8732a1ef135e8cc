//go:build !race

package jsonrpc

// giant is the length of a very long text in bytes.
const giant = 20 << 20
