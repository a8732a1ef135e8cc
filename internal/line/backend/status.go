package backend

import (
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
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
	Bridge          string     `json:"bridge,omitempty"`           // a [bridge.Name], if client and server speak different ones
	ProtocolVersion string     `json:"protocol_version,omitempty"` // the client's
	Client          string     `json:"client,omitempty"`           // name and version it gave itself
	InFlight        int        `json:"in_flight"`
	Queued          int        `json:"queued"`
	Unanswered      []Call     `json:"unanswered,omitempty"` // the oldest of both, [mostCalls] at most
	Trouble         Trouble    `json:"trouble,omitempty"`    // why it does not work, in one word
	HealthOff       bool       `json:"health_off,omitempty"` // whether it hangs is not looked at
	Remote          bool       `json:"remote,omitempty"`     // it has no process on this machine
	Login           string     `json:"login,omitempty"`      // of a server elsewhere that waits for a login: what to do
	UptimeMS        int64      `json:"uptime_ms,omitempty"`  // of the running process
	RSS             int64      `json:"rss_bytes,omitempty"`  // of its whole tree
	CPUMS           int64      `json:"cpu_ms,omitempty"`     // processor time of that
	ReadySince      *time.Time `json:"ready_since,omitempty"`
	Since           time.Time  `json:"since,omitzero"` // when it began to work, to be down, or to rest; starts that fail in between do not set it anew
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
	Role       string `json:"role"` // starting or standby, or retired: it finishes what it was asked; stuck: it was killed and has not ended
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

// Trouble is why a server does not work now. "": it works, or a new process is on its way.
type Trouble string

// The troubles.
const (
	Hung       Trouble = "hung"   // its process may hang: it was asked for a sign of life, and gave none
	Paused     Trouble = "paused" // it has crashed too often; the next start is at NextTryAt
	Failed     Trouble = "failed" // it cannot be started, or not again by itself
	WantsLogin Trouble = "login"  // somebody must log in
)

// Call is a request of the client that is not answered yet.
type Call struct {
	Method string    `json:"method"`
	Tool   string    `json:"tool,omitempty"`
	Since  time.Time `json:"since"` // when it came
	// MovedAt is when it was given to the server, or the server last reported progress of it; absent while it waits for a
	// server.
	MovedAt *time.Time `json:"moved_at,omitempty"`
	// Silent: for minutes nothing has been heard of it, and its server shows no sign of work, or --call-patience is over.
	Silent bool `json:"silent,omitempty"`
}

// mostCalls is how many calls a status lists.
const mostCalls = 50

// LastExit is how the last process ended.
type LastExit struct {
	Code   int       `json:"code"` // 128+N for signal N; -1: it could not be started, has not ended, or is not a process
	Signal string    `json:"signal,omitempty"`
	Why    string    `json:"why,omitempty"` // in words: "exit status 3", "could not be started: …"
	At     time.Time `json:"at"`
	Stderr []string  `json:"stderr,omitempty"` // its last lines
}

// Status returns the state at now.
func (b *Backend) Status(now time.Time) Status {
	snap := b.machine.Snapshot()
	s := Status{
		Name: b.opts.Name, Command: secret.Words(b.opts.Command), State: snap.State.String(), Since: snap.Stands,
		Generation: b.process.gen, RestartCount: b.restarts(), Era: b.session.Era.String(),
		ProtocolVersion: b.eras.clientVersion(), InFlight: b.calls.inFlight, Queued: b.calls.waiting,
		HealthOff: b.opts.Health.Off, Remote: b.opts.Remote, Listen: b.memory.known.Listen, StdoutNoise: b.noiseLog.total,
		Reload: string(b.opts.Reload), Beside: b.besideStatus(), Counters: b.tally.snapshot(),
	}
	s.ServerEra = b.process.era.String()
	if b.eras.bridge != nil {
		client := b.eras.bridge.Client()
		s.Bridge, s.Era, s.ServerEra = bridge.Name(client), client.String(), client.Other().String()
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
		s.CPUMS = vitals.CPU.Milliseconds()
		s.RSS, s.Login, s.Failing = vitals.RSS, vitals.Login, cmp.Or(vitals.Login, vitals.Trouble)
	}
	s.Unanswered, s.Trouble = b.unanswered(now), b.trouble(s.Login, snap)
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

// Used reports whether a client has made use of the server. A call is over then, and not only its handshake and its lists.
func (b *Backend) Used() bool {
	counted := b.tally.snapshot()
	return counted.Used()
}

// trouble is why the server does not work.
func (b *Backend) trouble(login string, snap supervise.Snapshot) Trouble {
	switch {
	case login != "":
		return WantsLogin
	case snap.State == supervise.Failed && !snap.NextTry.IsZero():
		return Paused
	case snap.State == supervise.Failed:
		return Failed
	case snap.State == supervise.Serving && b.health.watch != nil && b.health.watch.Suspected():
		return Hung
	}
	return ""
}

// unanswered lists the requests that are not answered, the oldest first. Streams are none: they wait for nothing.
func (b *Backend) unanswered(now time.Time) (list []Call) {
	b.now = now
	for c := range b.calls.all {
		if !c.isRequest() || c.method == mcp.Listen || c.state != waiting && c.state != sent {
			continue
		}
		one := Call{Method: c.methodName(), Since: c.came, Silent: b.long.silent(c)}
		if name, ok := jsonrpc.Unquote(c.tool.Of(c.line)); ok && c.method == mcp.ToolsCall {
			one.Tool = name
		}
		if c.state == sent {
			moved := c.touched
			one.MovedAt = &moved
		}
		if list = append(list, one); len(list) == mostCalls {
			break
		}
	}
	return list
}

func (b *Backend) besideStatus() (all []Beside) {
	for _, p := range b.beside {
		one := Beside{PID: p.pid, Generation: p.gen, Role: "retired"}
		if p.up() {
			one.RSS = p.server.Vitals().RSS
		}
		for range b.calls.at(p.gen) {
			one.InFlight++
		}
		if p.role == spare {
			one.Role = "starting"
			if p.phase == standby {
				one.Role = "standby"
			}
		}
		all = append(all, one)
	}
	for _, p := range b.life.stuck {
		all = append(all, Beside{PID: p.pid, Generation: p.gen, Role: "stuck", RSS: p.server.Vitals().RSS})
	}
	return all
}
