package cli

import (
	"runtime/debug"
	"time"

	"github.com/outlive-mcp/outlive/internal/child"
)

// slimAfter is when the pages that only the start needed are given back.
const slimAfter = 700 * time.Millisecond

// slimLater gives back what only the start needed: freed memory, and the pages of our own binary. The few that relaying
// uses come back with their next use; an idle outlive then holds a fifth of what its start touched.
func slimLater() (cancel func()) {
	t := time.AfterFunc(slimAfter, func() {
		debug.FreeOSMemory()
		child.ReleaseBinary()
	})
	return func() { t.Stop() }
}
