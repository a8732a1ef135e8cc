package monitor

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// An agent's night can be told from the database: when it stood how, and when a monitor looked. A monitor that is started again says
// nothing twice, and what an agent does while it is well is not kept.
func TestTheNightIsKept(t *testing.T) {
	w := newWorld(t)
	w.declare("", w.agent("a", "kind: command\nheartbeat: {}"))
	evening := w.wall
	beats := func(state heartbeat.State, minutes int) {
		for range minutes {
			w.beats("a", state)
			w.cycle() // each is a monitor of its own
			w.pass(time.Minute)
		}
	}
	beats(heartbeat.Working, 3)
	beats(heartbeat.Waiting, 2)
	beats(heartbeat.Working, 2)
	w.pass(time.Hour) // no monitor looks
	beats(heartbeat.Working, 2)

	view, err := InspectSince(t.Context(), w.opts, evening.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var night []string
	for _, v := range view.Verdicts["a"] {
		night = append(night, fmt.Sprint(v.At.Sub(evening), " ", v.Standing))
	}
	if d := cmp.Diff([]string{"0s well", "3m0s wrong", "5m0s well"}, night[:min(3, len(night))]); d != "" {
		t.Errorf("verdicts (-want +got):\n%s%v", d, view.Verdicts)
	}
	var watched []string
	for _, p := range view.Watched {
		watched = append(watched, fmt.Sprint(p.From.Sub(evening), " to ", p.To.Sub(evening)))
	}
	if d := cmp.Diff([]string{"0s to 6m0s", "1h7m0s to 1h8m0s"}, watched); d != "" {
		t.Errorf("watched (-want +got):\n%s", d)
	}
	later, err := InspectSince(t.Context(), w.opts, evening.Add(4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if list := later.Verdicts["a"]; len(list) < 2 || list[0].Standing != Wrong {
		t.Errorf("the one that was in force is missing: %v", list)
	}
}

func TestOldVerdictsAreForgotten(t *testing.T) {
	s, err := openStore(t.Context(), database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	now := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	for _, age := range []time.Duration{20 * 24 * time.Hour, 10 * 24 * time.Hour, time.Hour} {
		if _, err := s.db.Exec(`INSERT INTO verdict VALUES ('a', ?, ?)`, now.Add(-age).UnixMilli(), `{"standing":"well","class":"`+string(diagnose.AtWork)+`"}`); err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.Exec(`INSERT INTO watched VALUES (?, ?)`, now.Add(-age).UnixMilli(), now.Add(-age+time.Minute).UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.forget(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	all, err := s.verdictsSince(t.Context(), now.Add(-30*24*time.Hour))
	if err != nil || len(all["a"]) != 2 { // the one before the week tells how the week began
		t.Errorf("left: %v, %v", all, err)
	}
	if periods, err := s.watchedSince(t.Context(), time.Time{}); err != nil || len(periods) != 1 {
		t.Errorf("left: %v, %v", periods, err)
	}
}

// The number of a request names it in other tables, and in messages that were sent: no later one gets it.
func TestForgottenRequestsKeepTheirNumbers(t *testing.T) {
	s, err := openStore(t.Context(), database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	now := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	ask := func(at time.Time) (id int64) {
		err := s.do(t.Context(), func(tx *sql.Tx) error {
			if _, err := addRequest(t.Context(), tx, UserRequest{Agent: "a", Verb: verbStart}, at); err != nil {
				return err
			}
			return tx.QueryRow(`SELECT max(id) FROM wish`).Scan(&id)
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.do(t.Context(), func(tx *sql.Tx) error { return closeRequest(t.Context(), tx, id, "done", at) })
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := ask(now)
	now = now.Add(forgetAfter + time.Hour)
	if err := s.forget(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if second := ask(now); second <= first {
		t.Errorf("request %d follows on %d", second, first)
	}
}
