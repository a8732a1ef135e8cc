package mcp

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// LogLevels are the levels of log messages in both eras, least first (RFC 5424).
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Severity is how severe a raw log level is, from 0 on; -1: it is none.
func Severity(raw []byte) int {
	return slices.IndexFunc(LogLevels, func(name string) bool { return jsonrpc.EqualString(raw, name) })
}
