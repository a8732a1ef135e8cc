package control

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/curve"
)

// Status is how a running outlive and its server stand. Fields that do not apply are absent.
type Status struct {
	backend.Status           // the server
	PID            int       `json:"pid"`        // of outlive
	StartedAt      time.Time `json:"started_at"` // outlive's own start
	Version        string    `json:"version,omitempty"`
	Upgrades       int       `json:"upgrades,omitempty"`  // how often another version took over since then
	Telemetry      string    `json:"telemetry,omitempty"` // equal for those that OpenTelemetry gets with the same settings
	Dir            string    `json:"dir,omitempty"`       // working directory of both
	// ClientProcess is the process at the other end of stdin and stdout. Absent: there is none, it has ended, or the
	// system does not tell.
	ClientProcess *Peer  `json:"client_process,omitempty"`
	Lost          Lost   `json:"lost"`
	LogPath       string `json:"log_path,omitempty"`   // the server's stderr
	AuditPath     string `json:"audit_path,omitempty"` // the audit log

	URL    string `json:"url,omitempty"`    // of a gateway that listens
	Config string `json:"config,omitempty"` // of a gateway: its configuration; of nothing else
	// PeersAt is, of a gateway that is one of several, where it takes what the others pass on; SessionsAway why it can have no sessions now.
	PeersAt      string `json:"peers_at,omitempty"`
	SessionsAway string `json:"sessions_away,omitempty"`
	// DamagedSessions is, of a gateway, how many records of its session store were damaged when it was opened.
	DamagedSessions int      `json:"damaged_sessions,omitempty"`
	Servers         []Member `json:"servers,omitempty"` // of a gateway, or of the daemon that has the servers which runs share
}

// Member is how one server behind a gateway stands.
type Member struct {
	gateway.ServerStatus
	LogPath string          `json:"log_path,omitempty"` // its stderr
	Runs    []sharing.Run   `json:"runs,omitempty"`     // of a shared server: the runs that use it
	Apart   []sharing.Apart `json:"apart,omitempty"`    // of a shared server: others of the same command, and why they are others
}

// NoAnswer is the state of what runs and does not tell how it stands. It has counted, though its status has no counts.
const NoAnswer = "no answer"

// Gateway reports whether it is a gateway with a configuration that stands so.
func (s Status) Gateway() bool { return s.Config != "" }

// Run reports whether it is a run, which has one server, and no gateway or daemon with several.
func (s Status) Run() bool { return s.Servers == nil && !s.Gateway() && s.Command != nil }

// ServerNames are the names of a gateway's servers, in the order of its configuration.
func (s Status) ServerNames() []string {
	names := make([]string, len(s.Servers))
	for i, one := range s.Servers {
		names[i] = one.Name
	}
	return names
}

// Lost counts what could not be kept, in lines: a full disk, a stderr that nobody reads.
type Lost struct {
	Stderr int `json:"stderr"` // log lines and server output on outlive's stderr
	Log    int `json:"log"`    // of the server's stderr in LogPath
	Audit  int `json:"audit"`
}

// Order asks for a restart.
type Order struct {
	Reason string `json:"reason"`
	Server string `json:"server,omitempty"` // one of a gateway's, "" otherwise; the client fills it in
	// Stalled says that calls which the server has do not go on: it is not given the usual time to finish them, and they are answered
	// within seconds after the new process is ready.
	Stalled bool `json:"stalled,omitempty"`
}

// Peer is a process for all time: a number alone is given to another one day.
type Peer struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in the system's own units
	Boot  string `json:"boot"`  // of the machine; "": the system does not tell
}

// Result is the outcome of a restart that went well.
type Result struct {
	Generation int   `json:"generation"` // of the new process
	ServerPID  int   `json:"server_pid"`
	Processes  int   `json:"processes,omitempty"` // of a gateway's server: how many were replaced, of which this is one
	TookMS     int64 `json:"took_ms"`             // from the request to ready
	// Unasked says that the process runs and no client has spoken to it yet, so that nothing shows whether it works.
	Unasked bool `json:"unasked,omitempty"`
}

// Source is what a [Server] serves. Its methods are called from many goroutines.
type Source interface {
	// Status returns a snapshot.
	Status() Status
	// Used has, of the snapshot, the counts and the processes of the servers that clients have made use of. It is asked each minute, and does
	// not look at what the processes of the others use.
	Used() Status
	// Restart returns when the new process is ready, or with why it is not. ctx ends when the client has gone;
	// the restart goes on then.
	Restart(ctx context.Context, o Order) (Result, error)
	// Reload has a gateway read its configuration again.
	Reload() error
	// Upgrade has the program on disk take this one's place. It waits for a quiet moment, no
	// longer than wait, and returns only if that is not possible, and says why.
	Upgrade(ctx context.Context, wait time.Duration) error
}

// Curves asks how its servers did minute by minute: what has come after a minute, by the name of the server. An older outlive keeps
// nothing.
func (i Instance) Curves(ctx context.Context, after int64) (parts map[string]curve.Part, err error) {
	err = i.ask(ctx, http.MethodGet, "/v1/curves?after="+strconv.FormatInt(after, 10), nil, &parts)
	if _, older := errors.AsType[*refusal](err); older {
		return nil, nil
	}
	return parts, err
}

// totalsOf are the totals of the servers of a status.
func totalsOf(s Status) map[string]curve.Totals {
	if len(s.Servers) == 0 {
		return map[string]curve.Totals{s.Name: totals(s.Counters, s.Status)}
	}
	all := make(map[string]curve.Totals, len(s.Servers))
	for _, m := range s.Servers {
		links := make([]backend.Status, len(m.Links))
		for n, l := range m.Links {
			links[n] = l.Status
		}
		all[m.Name] = totals(m.Counted(), links...)
	}
	return all
}

// totals are what was counted of a server but for handshakes and lists, which its client asks for by itself, and what its processes use.
func totals(c backend.Counters, processes ...backend.Status) (t curve.Totals) {
	for n := range c.Calls {
		one := &c.Calls[n]
		if !one.MakesUse() {
			continue
		}
		t.Calls += one.Total()
		t.Errors += one.Bad()
		t.Latency.Merge(&one.Latency)
	}
	for _, p := range processes {
		t.Memory += p.RSS
		for _, b := range p.Beside {
			t.Memory += b.RSS
		}
		if p.ServerPID != 0 && p.CPUMS > 0 {
			if t.CPU == nil {
				t.CPU = map[int]time.Duration{}
			}
			t.CPU[p.ServerPID] = time.Duration(p.CPUMS) * time.Millisecond
		}
	}
	return t
}
