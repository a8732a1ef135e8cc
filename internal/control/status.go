package control

import (
	"context"
	"io"
	"time"
)

// Status is how a running outlive and its server stand. Fields that do not apply are absent.
type Status struct {
	Name      string    `json:"name"`       // of the server, as given by --name or derived from the command
	PID       int       `json:"pid"`        // of outlive
	StartedAt time.Time `json:"started_at"` // outlive's own start
	Version   string    `json:"version,omitempty"`
	Command   []string  `json:"command"` // the server's command line
	Dir       string    `json:"dir,omitempty"`

	State        string     `json:"state"` // supervise.State: starting, serving, backoff, failed, …
	ServerPID    int        `json:"server_pid,omitempty"`
	Generation   int        `json:"generation"`          // of the server process: 0, 1, …
	RestartCount int        `json:"restart_count"`       // restarts of any cause since outlive started (S0 4.4)
	UptimeMS     int64      `json:"uptime_ms,omitempty"` // of the running server process
	ReadySince   *time.Time `json:"ready_since,omitempty"`
	NextTryAt    *time.Time `json:"next_try_at,omitempty"` // when a server that is down is started again
	LastExit     *LastExit  `json:"last_exit,omitempty"`

	Era             string `json:"era,omitempty"`              // of the protocol: legacy, modern; absent until it is known
	ProtocolVersion string `json:"protocol_version,omitempty"` // as negotiated
	Client          string `json:"client,omitempty"`           // name and version the client gave itself
	InFlight        int    `json:"in_flight"`                  // requests the server is working on
	Queued          int    `json:"queued"`                     // requests that wait for the server

	StdoutNoise int    `json:"stdout_noise_lines"` // lines of the server's stdout that were no messages
	Lost        Lost   `json:"lost"`
	LogPath     string `json:"log_path,omitempty"`   // the server's stderr
	AuditPath   string `json:"audit_path,omitempty"` // the audit log
}

// LastExit is how the last server process ended.
type LastExit struct {
	Code   int       `json:"code"`             // 128+N for signal N; -1: it could not be started
	Signal string    `json:"signal,omitempty"` // "killed", "segmentation fault", …
	At     time.Time `json:"at"`
	Stderr []string  `json:"stderr,omitempty"` // its last lines, oldest first
}

// Lost counts what could not be kept, in lines: a full disk, a stderr that nobody reads.
type Lost struct {
	Stderr int `json:"stderr"` // log lines and server output on outlive's stderr
	Log    int `json:"log"`    // of the server's stderr in LogPath
	Audit  int `json:"audit"`
}

// Result is the outcome of a restart that went well.
type Result struct {
	Generation int   `json:"generation"` // of the new process
	ServerPID  int   `json:"server_pid"`
	TookMS     int64 `json:"took_ms"` // from the request to ready
}

// Source is what a [Server] serves. Its methods are called from many goroutines.
type Source interface {
	// Status returns a snapshot.
	Status() Status
	// Restart returns when the new process is ready, or with why it is not. ctx ends when whoever asked has gone;
	// the restart goes on then.
	Restart(ctx context.Context, reason string) (Result, error)
	// Log writes what is kept of the server's stderr to w, and with follow goes on until ctx ends.
	Log(ctx context.Context, w io.Writer, follow bool) error
}
