package monitor

import (
	"context"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// processes is the access to processes; tests replace it.
type processes interface {
	Look(pid int) (process.Process, error)
	Stop(ctx context.Context, t process.Target) error
	Start(l process.Launch) (process.Identity, error)
	// Of declared agents only.
	All() []process.Process
	Args(pid int) []string
	Files(pid int) []string
	Variable(pid int, name string) string
	Interrupt(id process.Identity) error
}

// nearDeath is how much older than a heartbeat its process must be, to be certainly older: two clocks are compared.
const nearDeath = time.Minute
