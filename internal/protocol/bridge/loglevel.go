package bridge

import "github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"

// levels are the levels of log messages in both eras, least first (RFC 5424).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severity returns how severe a raw log level is, -1 if it is none.
func severity(raw []byte) int {
	for i, name := range levels {
		if jsonrpc.EqualString(raw, name) {
			return i
		}
	}
	return -1
}

// mostVerbose returns the index of the least severe of the levels in use, -1 if none is.
func mostVerbose(inUse []int) int {
	least := -1
	for _, one := range inUse {
		if one >= 0 && (least < 0 || one < least) {
			least = one
		}
	}
	return least
}
