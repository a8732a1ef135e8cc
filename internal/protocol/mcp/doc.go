// Package mcp is what outlive knows of the Model Context Protocol: its eras and versions, its methods and which of
// them may be sent again, and the few messages outlive itself says.
//
// The package is pure: no goroutine, no clock, no I/O. It reads raw JSON through package jsonrpc and never decodes
// what it does not need.
package mcp
