package backend

import (
	"fmt"
	"testing"
)

// TestQuestions asks two processes; each answer reaches whoever asked that process, once, and what a dead one was asked is forgotten.
func TestQuestions(t *testing.T) {
	w := &fakeWorld{}
	w.b = &Backend{core: &core{}}
	q := questions{open: map[string]*question{}}
	one := &process{gen: 1, phase: active, server: &fakeServer{w: w, gen: 1}}
	two := &process{gen: 2, phase: active, server: &fakeServer{w: w, gen: 2}}
	gone := &process{gen: 3, phase: exited}
	heard := ""
	for _, p := range []*process{one, two, gone} {
		q.ask(p, func(id []byte) []byte { return id }, func([]byte) { heard += fmt.Sprint(p.gen) })
	}
	if got := fmt.Sprint(w.toServer); got != `[1500000001 1500000002]` {
		t.Errorf("asked: %s", got)
	}
	if q.take(two, []byte("1500000001")) != nil {
		t.Error("a process has answered for another one")
	}
	q.take(one, []byte("1500000001"))(nil)
	if heard != "1" || q.take(one, []byte("1500000001")) != nil || q.of(one) || !q.of(two) {
		t.Errorf("heard %q, open %d", heard, len(q.open))
	}
	if q.forget(two); q.of(two) {
		t.Error("a dead process is still waited for")
	}
	for id, want := range map[string]bool{"1500000001": true, "1500000001.0": true, "15.5e8": true, "1500000000.5": false, "1600000000": false, `"1500000001"`: true, `"1600000000"`: false, `"x"`: false, "1": false} {
		if ours([]byte(id)) != want {
			t.Errorf("ours(%s): %v", id, !want)
		}
	}
}

// The backend's own question for the era never counts as begun: requests that no server has seen get its answer as theirs.
func TestTheQuestionForTheEraIsNotBegun(t *testing.T) {
	for id, want := range map[string]string{eraQuestion: "no", "7": "unknown"} {
		if c := (&call{id: []byte(id), resent: 1}); c.delivered() != want {
			t.Errorf("%s, sent again, is delivered: %s, want %s", id, c.delivered(), want)
		}
	}
}
