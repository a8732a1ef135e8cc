package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// World is all that a backend acts on besides its [Server] processes. Each of its parts gets the one that it needs.
type World interface {
	Client
	Runner
	Stderr
	Markers
	Memory
}

// Client is the way to the client. Lines are given without newline. Forward takes a slice of the line that is being handled
// and need not copy it; Send must copy.
type Client interface {
	ForwardToClient(line []byte)
	SendToClient(line []byte)
	// Flush writes what was sent now, because what follows takes time.
	Flush()
	// Keep makes a long line that is being handled outlast the call; the hold is released by the backend.
	Keep(line []byte) (hold *lineloop.Hold, kept []byte)
}

// Runner starts processes, wakes the backend, and ends everything.
type Runner interface {
	// Start starts a process. Its output comes back as ServerLine, its end as ServerExited and ServerClosed. One beside another
	// may be Unborn when Start returns, and keeps what it is given and told until it exists: then comes ServerSpawned, or its
	// end with the error in it.
	Start(Launch) (Server, error)
	// Finish ends the whole connection: nothing more will be kept alive. code is outlive's exit status.
	Finish(code int)
	// WakeAt tells when [Backend.Tick] wants to be called next; the zero time means not at all. It is told whenever that changes.
	WakeAt(at time.Time)
	// Rand returns a number in [0,1) for jitter.
	Rand() float64
}

// Stderr takes what belongs there.
type Stderr interface {
	// Noise takes a line of the server's stdout that is not a message.
	Noise(line []byte)
}

// Markers reads and writes the restart marker file (RT-2).
type Markers interface {
	WriteMarker(m restart.MarkerRecord) error
	ReadMarker() (restart.MarkerRecord, error)
	MarkerPath() string
}

// Memory outlasts this run of the command.
type Memory interface {
	// Remember keeps what was learned about the command for the next run of it.
	Remember(k Knowledge)
}
