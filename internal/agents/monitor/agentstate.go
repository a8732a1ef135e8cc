package monitor

import (
	"context"
	"database/sql"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// agentState is the stored state of an agent.
type agentState struct {
	Entry    piv.Project      `json:"entry"`
	Declared bool             `json:"declared,omitempty"` // by a registry of version 2
	Since    time.Time        `json:"since,omitzero"`     // when it was first looked at
	Identity process.Identity `json:"identity,omitzero"`  // of its process, when it was last sure which one that is
	Alive    time.Time        `json:"alive,omitzero"`     // when it was first seen alive
	Gone     time.Time        `json:"gone,omitzero"`      // when its end was first seen, or that of GoneOf
	GoneOf   process.Identity `json:"gone_of,omitzero"`   // which that was
	// Ahead is a heartbeat of the future, and AheadSince when it was first seen. It becomes stale like any other if it
	// does not change.
	Ahead      string    `json:"ahead,omitempty"`
	AheadSince time.Time `json:"ahead_since,omitzero"`
	Blind      int       `json:"blind,omitempty"` // looks in a row that could not be judged

	// Signs are the latest signs of life in one word, and Sequence how often they have changed.
	Signs    string `json:"signs,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
	Session  string `json:"session,omitempty"` // that can be gone on with
	Phase    int    `json:"phase,omitempty"`   // of a declared agent

	Trouble trouble   `json:"trouble,omitzero"`
	Well    wellness  `json:"well,omitzero"`
	Reset   time.Time `json:"reset,omitzero"`    // when a person gave all budgets back
	Stopped bool      `json:"stopped,omitempty"` // a person has stopped it: nothing is done until it lives again
	// RestSince is since when it was idle when it was last seen alive. Zero: it was not idle.
	RestSince time.Time `json:"rest_since,omitzero"`
	// TasksGone is since when all background tasks of its sessions have been seen gone.
	TasksGone time.Time `json:"tasks_gone,omitzero"`
	Left      bool      `json:"left,omitempty"` // its CLI has said that a person has left it
	// Shown is what the session of a process that has ended showed last. Zero: it lives, or nothing was read.
	Shown lastShown `json:"shown,omitzero"`
	// Nested are the living CLIs that it was seen to have started, as namesOf has them.
	Nested string `json:"nested,omitempty"`
	// Moved is what of the environment of its process moves its CLI's files away from ours. It is started again with that.
	Moved string `json:"moved,omitempty"`

	// Worked says that it has worked since the last announcement. DoneRun is the last run that was announced, or needed
	// no announcement.
	Worked  bool             `json:"worked,omitempty"`
	DoneRun process.Identity `json:"done_run,omitzero"`

	// TypedAt is when a hook last reported a prompt.
	TypedAt time.Time `json:"typed_at,omitzero"`
	// Asks is the last permission request reported by a hook, until the agent continues.
	Asks hookState `json:"asks,omitzero"`
	// Unheard is when events of hooks were dropped before they were read, until one of its own is read.
	Unheard time.Time `json:"unheard,omitzero"`
	// CPU is what the descendants had used at a time.
	CPU cpuMark `json:"cpu,omitzero"`
}

// lastShown is what a session showed when its process ended. It counts as long as that process was the last one.
type lastShown struct {
	Of    process.Identity `json:"of"`
	Left  bool             `json:"left,omitempty"` // a person had interrupted its last turn just before
	Error agentcli.Failure `json:"error,omitzero"` // the last event, if that is an error
}

// trouble is what was wrong at the last look. While it is the same, its start time is kept.
type trouble struct {
	Class string    `json:"class,omitempty"`
	Start int64     `json:"start,omitempty"` // the last start of ours before it
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Spared says that the record already notes that it is left alone because of a person.
	Spared bool `json:"spared,omitempty"`
}

// wellness is what an agent without trouble does, and since when. Zero: it is in trouble, or its class says enough.
type wellness struct {
	Does  string    `json:"does,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// hookState is a permission request at the agent's own dialog.
type hookState struct {
	Tool string    `json:"tool,omitempty"`
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Unasked is why it is left to that dialog; "": no reason.
	Unasked string `json:"unasked,omitempty"`
}

// cpuMark is one CPU reading of an agent's descendants.
type cpuMark struct {
	Used   time.Duration `json:"used,omitempty"`
	Share  float64       `json:"share,omitempty"` // of one core, between the last two readings
	Known  bool          `json:"known,omitempty"`
	Starts bool          `json:"starts,omitempty"` // a new descendant was started in between
	Kept   bool          `json:"kept,omitempty"`   // Share and Starts are of the previous window
	Mono   time.Duration `json:"mono,omitempty"`   // the clock of the machine while it is awake, at the reading
	Worked time.Duration `json:"worked,omitempty"` // the same at the last reading that showed work; 0: there was none
}

func (s *store) agentStates(ctx context.Context) (map[string]agentState, error) {
	type named struct {
		name string
		agentState
	}
	list, err := query(ctx, s.db, `SELECT project, data FROM sight`, func(r *sql.Rows) (n named, err error) {
		err = r.Scan(&n.name, asJSON{&n.agentState})
		return n, err
	})
	m := map[string]agentState{}
	for _, n := range list {
		m[n.name] = n.agentState
	}
	return m, err
}

func putState(ctx context.Context, tx *sql.Tx, name string, v agentState) error {
	_, err := write(ctx, tx, `INSERT INTO sight VALUES (?, ?) ON CONFLICT (project) DO UPDATE SET data = excluded.data`, name, asJSON{v})
	return err
}

// stateCache owns the state of the agents, and knows what is not stored yet.
type stateCache struct {
	store *store

	all     map[string]agentState // the monitor's, by agent
	changed []string              // agents of whom something new is known, which is not written down yet
}

// note changes the state of one agent; save stores it.
func (s *stateCache) note(name string, v agentState) {
	s.all[name] = v
	s.changed = append(s.changed, name)
}

// save stores what was noted, all or nothing.
func (s *stateCache) save(ctx context.Context) error {
	changed := s.changed
	s.changed = nil
	if len(changed) == 0 {
		return nil
	}
	return s.store.do(ctx, func(tx *sql.Tx) error {
		for _, name := range changed {
			if err := putState(ctx, tx, name, s.all[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *stateCache) set(ctx context.Context, name string, v agentState) error {
	s.note(name, v)
	return s.save(ctx)
}

func (s *stateCache) drop(ctx context.Context, name string) error {
	delete(s.all, name)
	_, err := write(ctx, s.store.db, `DELETE FROM sight WHERE project = ?`, name)
	return err
}
