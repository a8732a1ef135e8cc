package monitor

import (
	"context"
	"database/sql"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// verdictSchema is the second version of monitor.db: how each agent stood, and when the monitor looked.
const verdictSchema = `
CREATE TABLE IF NOT EXISTS verdict (agent TEXT NOT NULL, at INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (agent, at)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watched (began INTEGER PRIMARY KEY, until INTEGER NOT NULL);
`

// verdictsKept is how long verdicts are kept: a week's nights.
const verdictsKept = 7 * 24 * time.Hour

// watchedEvery is how often the monitor writes down that it still looks. A monitor that is killed has looked up to this much longer
// than is known.
const watchedEvery = time.Minute

// Standing is a verdict at a glance.
type Standing string

// The standings.
const (
	Well  Standing = "well"
	Rests Standing = "rests" // it is not watched, paused, or was stopped by a person
	Wrong Standing = "wrong"
)

// Verdict is how an agent stood from a time on, until its next verdict. While an agent is well, what it does is not kept: it may
// begin and end a turn many times a minute.
type Verdict struct {
	At       time.Time      `json:"-"`
	Standing Standing       `json:"standing"`
	Class    diagnose.Class `json:"class"`
	Details  string         `json:"details,omitempty"`
}

// same reports whether v says nothing new after o.
func (v Verdict) same(o Verdict) bool {
	return v.Standing == o.Standing && (v.Standing == Well || v.Class == o.Class)
}

// Period is a time in which a monitor looked.
type Period struct{ From, To time.Time }

// verdictOf is how an agent stands now.
func verdictOf(c *examined, now time.Time) Verdict {
	v := Verdict{At: now.Round(0), Standing: Wrong, Class: c.diagnosis.Class, Details: c.diagnosis.Details}
	switch {
	case v.Class == diagnose.NotWatched, v.Class == diagnose.Paused, c.agentState.Stopped, c.evidence.Paused:
		v.Standing = Rests
	case c.diagnosis.Well():
		v.Standing = Well
	}
	return v
}

// noteVerdicts writes down which agents stand in another way than at the last look, and from time to time that there was a look.
func (m *Monitor) noteVerdicts(ctx context.Context, cases []*examined, now time.Time) error {
	fresh := map[string]Verdict{}
	for _, c := range cases {
		v := verdictOf(c, now)
		was, known := m.verdicts[c.Key]
		if known && v.Standing == Wrong && c.since.Sub(was.At) >= time.Millisecond && c.since.Before(v.At) {
			v.At = c.since // when it went wrong, not when that was seen
		}
		if !known || !v.same(was) {
			fresh[c.Key] = v
		}
	}
	due := now.Sub(m.watched.To).Abs() >= watchedEvery
	if len(fresh) == 0 && !due {
		return nil
	}
	period := Period{m.watched.From, now}
	if gap := now.Sub(m.watched.To); gap < 0 || gap > 2*watchedEvery { // no monitor ran, the machine slept, or its clock was set
		period.From = now
	}
	err := m.store.do(ctx, func(tx *sql.Tx) error {
		for key, v := range fresh {
			if _, err := write(ctx, tx, `INSERT OR REPLACE INTO verdict VALUES (?, ?, ?)`, key, v.At.UnixMilli(), asJSON{v}); err != nil {
				return err
			}
		}
		_, err := write(ctx, tx, `INSERT OR REPLACE INTO watched VALUES (?, ?)`, period.From.UnixMilli(), period.To.UnixMilli())
		return err
	})
	if err != nil {
		return err
	}
	for key, v := range fresh {
		m.verdicts[key] = v
	}
	m.watched = period
	return nil
}

// lastWatched is when the last monitor has looked; zero: none has.
func (s *store) lastWatched(ctx context.Context) (p Period, err error) {
	list, err := s.watchedSince(ctx, time.Time{})
	if len(list) > 0 {
		p = list[len(list)-1]
	}
	return p, err
}

// verdictsSince are the verdicts of each agent since a time, and the one before them, the oldest first.
func (s *store) verdictsSince(ctx context.Context, since time.Time) (map[string][]Verdict, error) {
	type named struct {
		agent string
		Verdict
	}
	list, err := query(ctx, s.db, `SELECT agent, at, data FROM verdict AS v WHERE at >= ?1
		OR at = (SELECT max(at) FROM verdict WHERE agent = v.agent AND at < ?1) ORDER BY agent, at`, func(r *sql.Rows) (n named, err error) {
		var at int64
		err = r.Scan(&n.agent, &at, asJSON{&n.Verdict})
		n.At = time.UnixMilli(at)
		return n, err
	}, since.UnixMilli())
	all := map[string][]Verdict{}
	for _, n := range list {
		all[n.agent] = append(all[n.agent], n.Verdict)
	}
	return all, err
}

// lastVerdicts are those that are in force.
func (s *store) lastVerdicts(ctx context.Context) (map[string]Verdict, error) {
	all, err := s.verdictsSince(ctx, time.Now().Add(verdictsKept)) // none is of then: only the ones before are left
	last := map[string]Verdict{}
	for key, list := range all {
		last[key] = list[len(list)-1]
	}
	return last, err
}

// watchedSince are the times since then in which a monitor looked, the oldest first.
func (s *store) watchedSince(ctx context.Context, since time.Time) ([]Period, error) {
	return query(ctx, s.db, `SELECT began, until FROM watched WHERE until >= ? ORDER BY began`, func(r *sql.Rows) (Period, error) {
		var began, until int64
		err := r.Scan(&began, &until)
		return Period{time.UnixMilli(began), time.UnixMilli(until)}, err
	}, since.UnixMilli())
}
