package monitor

import (
	"context"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// processes is the world of processes. Tests put another one in its place.
type processes interface {
	Look(pid int) (process.Process, error)
	Stop(ctx context.Context, t process.Target) error
	Start(l process.Launch) (process.Identity, error)
	table
}

// table is what is asked of declared agents' processes.
type table interface {
	All() []process.Entry
	Args(pid int) []string
	Files(pid int) []string
	Interrupt(id process.Identity) error
}

// nearDeath is how much older than a heartbeat a process of its number must be, to be sure that it is not younger:
// the two are measured by different clocks.
const nearDeath = time.Minute
