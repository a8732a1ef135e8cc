package monitor

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// incarnationOf is what somebody far away knows of an agent.
func (w *world) incarnationOf(name string) string {
	w.t.Helper()
	view, err := Inspect(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range view.Findings {
		if f.Key == name {
			return f.Incarnation
		}
	}
	w.t.Fatalf("there is no %s", name)
	return ""
}

// wants asks for something, lets the monitor look, and returns what has become of it.
func (w *world) wants(request UserRequest) (string, error) {
	w.t.Helper()
	if _, err := Ask(w.t.Context(), w.opts, request); err != nil && !errors.Is(err, ErrNobody) {
		return "", err // it was answered before
	}
	w.cycle()
	return Ask(w.t.Context(), w.opts, request)
}

// Several people see the same agent in the same state, from several machines: one of them restarts it. Asked again, that is the same request.
// It is the next incarnation that can be restarted next, and one that only its process has changed is another, too.
func TestDecidedOnAnIncarnation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("shop"), time.Hour)
	w.pidfile("shop", "1001")
	w.beats("shop", "working")
	w.cycle()
	first := w.incarnationOf("shop")
	if again := w.incarnationOf("shop"); again != first {
		t.Fatalf("looking makes %s of %s", again, first)
	}
	restart := func(command, incarnation string) UserRequest {
		return UserRequest{Agent: "shop", Verb: "restart", By: "ann", Command: command, Incarnation: incarnation}
	}
	answer, err := w.wants(restart("one", first))
	if err != nil || len(w.started) != 1 {
		t.Fatalf("%q, %v, started %v", answer, err, w.started)
	}
	if again, err := w.wants(restart("one", first)); err != nil || again != answer || len(w.started) != 1 {
		t.Errorf("asked again: %q, %v, started %v", again, err, w.started)
	}
	for _, request := range []UserRequest{
		restart("two", first), {Agent: "shop", Verb: "stop", Command: "three", Incarnation: first}, {Agent: "gone", Verb: "restart", Command: "four", Incarnation: first},
	} {
		stopped := len(w.stopped)
		if answer, err := w.wants(request); !errors.Is(err, ErrChanged) || len(w.started) != 1 || len(w.stopped) != stopped {
			t.Errorf("%+v: %q, %v, started %v, stopped %v", request, answer, err, w.started, w.stopped)
		}
	}
	second := w.incarnationOf("shop")
	w.pass(time.Minute)
	if answer, err := w.wants(restart("five", second)); err != nil || len(w.started) != 2 {
		t.Errorf("the next one: %q, %v, started %v", answer, err, w.started)
	}
	third := w.incarnationOf("shop")
	clear(w.living)
	w.process(1002, w.dir("shop"), time.Hour) // its owner has started it
	w.pidfile("shop", "1002")
	if answer, err := w.wants(restart("six", third)); !errors.Is(err, ErrChanged) || len(w.started) != 2 {
		t.Errorf("another process: %q, %v, started %v", answer, err, w.started)
	}
	if all := []string{first, second, third, w.incarnationOf("shop")}; len(slices.Compact(slices.Sorted(slices.Values(all)))) != 4 {
		t.Errorf("incarnations: %v", all)
	}
}
