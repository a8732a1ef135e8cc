package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// World is what a backend acts on besides its [Server] processes.
type World interface {
	Client

	// Start starts a process. Its output arrives by ServerLine, its end by ServerExited and ServerClosed. A spare may be
	// NotSpawned when Start returns, and buffers its input until it exists: then comes ServerSpawned, or its end with the
	// error.
	Start(Launch) (Server, error)
	// Finish ends the whole connection. code is outlive's exit status.
	Finish(code int)
	// WakeAt sets when [Backend.Tick] must be called next; zero: not at all. It is called whenever that changes.
	WakeAt(at time.Time)
	// Rand returns a number in [0,1) for jitter.
	Rand() float64

	// The restart marker file (RT-2).
	WriteMarker(m restart.MarkerRecord) error
	ReadMarker() (restart.MarkerRecord, error)
	MarkerPath() string

	// Noise takes a line of the server's stdout that is not a message, for stderr.
	Noise(line []byte)
	// Remember stores what was learned about the command for its next run: was is what was known of it before. See [Knowledge.After].
	Remember(was, now Knowledge)
}

// Client is the connection to the client. Lines are given without newline. Forward takes a slice of the line being
// handled and need not copy it; Send must copy.
type Client interface {
	ForwardToClient(line []byte)
	SendToClient(line []byte)
	// Flush writes what was sent, because slow work follows.
	Flush()
	// Keep makes a long line outlast the call; the backend releases the hold.
	Keep(line []byte) (hold *lineloop.Hold, kept []byte)
}
