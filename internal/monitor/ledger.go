package monitor

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
)

// step is how far a recovery has come. Each is written down before the next is done.
type step string

// The steps, in order, and the ends.
const (
	begun     step = "begun"     // what is to be stopped is known
	stopping  step = "stopping"  // signals are on their way
	stopped   step = "stopped"   // it is dead: proven
	starting  step = "starting"  // a process with the token may be there
	started   step = "started"   // and is known; the registry is told
	completed step = "completed" // everything is done; the new process has to show that it lives
	recovered step = "recovered" // it has
	abandoned step = "abandoned" // the project came back by itself before anything was done: not counted
	failed    step = "failed"    // a human has been told why
)

// recovery is one restart, or what there is of it.
type recovery struct {
	ID      int64     `json:"-"`
	Project string    `json:"-"`
	Stall   Stall     `json:"-"`
	Phase   int       `json:"-"`
	At      time.Time `json:"-"`
	Step    step      `json:"-"`

	Entry     piv.Project      `json:"entry"`
	Class     string           `json:"class"`
	Rule      string           `json:"rule"`
	Details   string           `json:"details"`
	Action    ActionKind       `json:"action"`
	Count     int              `json:"count"` // restarts before this one
	Max       int              `json:"max"`
	Target    process.Target   `json:"target"`
	Run       string           `json:"run"`
	StartedAt time.Time        `json:"started_at,omitzero"`
	Process   process.Identity `json:"process,omitzero"`
}

// unfinished reports a step that a killed monitor has left, and that has to be brought to an end.
func (r recovery) unfinished() bool {
	switch r.Step {
	case begun, stopping, stopped, starting, started:
		return true
	}
	return false
}

func (s *store) addRecovery(ctx context.Context, r *recovery) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	res, err := s.db.ExecContext(ctx, `INSERT INTO recovery (project, stall, phase, at, step, data) VALUES (?, ?, ?, ?, ?, ?)`,
		r.Project, r.Stall, r.Phase, r.At.UnixMilli(), r.Step, string(data))
	if err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	r.ID, err = res.LastInsertId()
	return err
}

// setRecovery writes down the step that r has come to, with whatever belongs to it.
func setRecovery(ctx context.Context, tx *sql.Tx, r *recovery, to step) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE recovery SET step = ?, data = ? WHERE id = ?`, to, string(data), r.ID); err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	r.Step = to
	return nil
}

// recoveries are those of the last days, the oldest first, by project.
func (s *store) recoveries(ctx context.Context) (map[string][]recovery, error) {
	list, err := query(ctx, s.db, `SELECT id, project, stall, phase, at, step, data FROM recovery ORDER BY id`, func(r *sql.Rows) (v recovery, err error) {
		var at int64
		var data string
		if err := r.Scan(&v.ID, &v.Project, &v.Stall, &v.Phase, &at, &v.Step, &data); err != nil {
			return v, err
		}
		v.At = time.UnixMilli(at)
		return v, json.Unmarshal([]byte(data), &v)
	})
	m := map[string][]recovery{}
	for _, r := range list {
		m[r.Project] = append(m[r.Project], r)
	}
	return m, err
}

// incident is one thing that a human has been told of.
type incident struct {
	ID      int64     `json:"-"`
	Project string    `json:"-"`
	Stall   Stall     `json:"-"`
	Phase   int       `json:"-"`
	Opened  time.Time `json:"-"`

	Name    string `json:"name"`
	Details string `json:"details"`
	Action  string `json:"action"`
	Count   int    `json:"count"`
	Max     int    `json:"max"`
}

// openIncidents are those that are not closed, by project.
func (s *store) openIncidents(ctx context.Context) (map[string][]incident, error) {
	list, err := query(ctx, s.db, `SELECT id, project, stall, phase, opened, data FROM incident WHERE closed = 0 ORDER BY id`, func(r *sql.Rows) (v incident, err error) {
		var opened int64
		var data string
		if err := r.Scan(&v.ID, &v.Project, &v.Stall, &v.Phase, &opened, &data); err != nil {
			return v, err
		}
		v.Opened = time.UnixMilli(opened)
		return v, json.Unmarshal([]byte(data), &v)
	})
	m := map[string][]incident{}
	for _, i := range list {
		m[i.Project] = append(m[i.Project], i)
	}
	return m, err
}

// openIncident adds an incident within tx. new is false when it is open already.
func openIncident(ctx context.Context, tx *sql.Tx, i *incident) (new bool, err error) {
	data, err := json.Marshal(i)
	if err != nil {
		return false, err
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO incident (project, stall, phase, opened, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
		i.Project, i.Stall, i.Phase, i.Opened.UnixMilli(), string(data)).Scan(&i.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func closeIncident(ctx context.Context, tx *sql.Tx, id int64, now time.Time) error {
	_, err := tx.ExecContext(ctx, `UPDATE incident SET closed = ? WHERE id = ?`, now.UnixMilli(), id)
	return err
}
