package backend

import (
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// Status is the state of a backend, for people and programs. Unknown times are zero.
type Status struct {
	Name            string     `json:"name"`
	Command         []string   `json:"command"` // without secrets
	State           string     `json:"state"`   // a supervise.State
	ServerPID       int        `json:"server_pid,omitempty"`
	Generation      int        `json:"generation"`
	RestartCount    int        `json:"restart_count"`
	Era             string     `json:"era"`                        // that the client speaks
	ServerEra       string     `json:"server_era"`                 // that the server is spoken to in
	Bridge          string     `json:"bridge,omitempty"`           // a [bridge.Mode], if client and server speak different ones
	ProtocolVersion string     `json:"protocol_version,omitempty"` // the client's
	Client          string     `json:"client,omitempty"`           // name and version it gave itself
	InFlight        int        `json:"in_flight"`
	Queued          int        `json:"queued"`
	UptimeMS        int64      `json:"uptime_ms,omitempty"` // of the running process
	RSS             int64      `json:"rss_bytes,omitempty"` // of its whole tree
	ReadySince      *time.Time `json:"ready_since,omitempty"`
	NextTryAt       *time.Time `json:"next_try_at,omitempty"`
	StdoutNoise     int        `json:"stdout_noise_lines"`
	LastExit        *LastExit  `json:"last_exit,omitempty"`
	Failing         string     `json:"failing,omitempty"` // of a server elsewhere: why the last request failed on its way, or that somebody is to log in

	Listen Listening `json:"listen,omitempty"` // silent: the server is not asked for streams, it answered nothing after one

	Reload       string         `json:"reload"` // how planned restarts go: a [Reload]
	Beside       []Beside       `json:"beside,omitempty"`
	ReloadFailed *ReloadTrouble `json:"reload_failed,omitempty"` // the last planned restart, if it came to nothing

	Counters
}

// Beside is a process beside the serving one.
type Beside struct {
	PID        int    `json:"pid"`
	Generation int    `json:"generation"`
	Role       string `json:"role"` // starting or standby, or retired: it finishes what it was asked
	InFlight   int    `json:"in_flight,omitempty"`
	RSS        int64  `json:"rss_bytes,omitempty"` // of its whole tree
}

// ReloadTrouble says why a new process did not take over.
type ReloadTrouble struct {
	At     time.Time `json:"at"`
	Error  string    `json:"error"`
	Stderr []string  `json:"stderr,omitempty"` // its last lines
	Hint   string    `json:"hint,omitempty"`
}

// LastExit is how the last process ended.
type LastExit struct {
	Code   int       `json:"code"` // 128+N for signal N; -1: it could not be started, or is not a process
	Signal string    `json:"signal,omitempty"`
	Why    string    `json:"why,omitempty"` // in words: "last exit 3", "could not be started: …"
	At     time.Time `json:"at"`
	Stderr []string  `json:"stderr,omitempty"` // its last lines
}

// Status returns the state at now.
func (b *Backend) Status(now time.Time) Status {
	snap := b.machine.Snapshot()
	s := Status{
		Name: b.opts.Name, Command: secret.Words(b.opts.Command), State: snap.State.String(),
		Generation: b.process.gen, RestartCount: b.machine.Restarts(), Era: b.session.Era.String(),
		ProtocolVersion: b.session.Version, InFlight: b.calls.inFlight, Queued: b.calls.waiting,
		Listen: b.memory.known.Listen, StdoutNoise: b.noiseLog.total, Reload: string(b.opts.Reload), Beside: b.besideStatus(),
		Counters: b.tally.snapshot(),
	}
	s.ServerEra = b.process.era.String()
	if b.eras.adapter != nil && b.eras.adapter.bridge != nil {
		mode := b.eras.adapter.bridge.Mode()
		s.Bridge, s.Era, s.ServerEra = mode.String(), mode.ClientEra().String(), mode.ServerEra().String()
		s.ProtocolVersion = b.eras.adapter.bridge.ClientVersion()
	}
	if f := b.history.lastReloadFailure; !f.at.IsZero() {
		s.ReloadFailed = &ReloadTrouble{At: f.at, Error: f.why, Stderr: f.stderr, Hint: f.hint()}
	}
	if snap.Asleep {
		s.State = "asleep"
	}
	if name, version := b.session.ClientName(); name != "" {
		s.Client = name + " " + version
	}
	if b.process.up() {
		s.ServerPID = b.process.pid
		s.UptimeMS = now.Sub(b.process.started).Milliseconds()
		vitals := b.process.server.Vitals()
		s.RSS, s.Failing = vitals.RSS, cmp.Or(vitals.Login, vitals.Trouble)
	}
	if b.process.answered() {
		at := b.history.readyAt
		s.ReadySince = &at
	}
	if !snap.NextTry.IsZero() && (snap.State == supervise.Backoff || snap.State == supervise.Failed) {
		s.NextTryAt = &snap.NextTry
	}
	if o := b.history.lastOut; !o.at.IsZero() {
		s.LastExit = &LastExit{Code: o.code, Signal: o.signal, Why: b.history.describeExit(), At: o.at, Stderr: o.stderr}
	}
	return s
}

func (b *Backend) besideStatus() (all []Beside) {
	for _, p := range b.beside {
		one := Beside{PID: p.pid, Generation: p.gen, Role: "retired"}
		if p.up() {
			one.RSS = p.server.Vitals().RSS
		}
		for c := range b.calls.all {
			if c.state == sent && c.gen == p.gen {
				one.InFlight++
			}
		}
		if p.role == spare {
			one.Role = "starting"
			if p.phase == standby {
				one.Role = "standby"
			}
		}
		all = append(all, one)
	}
	return all
}
