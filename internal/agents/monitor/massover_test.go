package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// An incident of many ends with its members: whoever is in other trouble, has finished or is paused leaves it, and when fewer than two
// are left it is over. Nobody who has left waits for it.
func TestAMassEndsWithItsMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"anna", "bert", "carl", "dora"}
	declare := func(paused ...string) {
		var list []string
		for _, name := range names {
			text := patient
			for _, p := range paused {
				if p == name {
					text += "paused: true\n"
				}
			}
			list = append(list, w.agent(name, text))
		}
		w.declare("", list...)
	}
	declare()
	all := map[string]*claude{}
	for i, name := range names {
		all[name] = w.claude(name, 1001+i)
		all[name].prompt()
	}
	w.cycle()
	w.pass(10 * time.Second)
	for _, name := range names {
		all[name].fails("authentication_failed", "401", "Please run /login")
	}
	w.spends(time.Minute, 10*time.Second)
	if len(w.said) != 1 || !strings.Contains(fmt.Sprint(w.shown[0]), "4 agents") {
		t.Fatalf("said %q", w.said)
	}
	declare("anna")
	w.spends(7*time.Minute, 30*time.Second)
	if latest := fmt.Sprint(w.shown[len(w.shown)-1]); !strings.Contains(latest, "3 agents") {
		t.Fatalf("one is paused, and people see %q", latest)
	}
	all["bert"].fails("rate_limit", "429", "You've hit your limit · resets 4am (UTC)") // another trouble, which is nobody else's
	declare("anna", "carl")
	w.spends(7*time.Minute, 30*time.Second)
	var over bool
	for _, m := range w.shown {
		over = over || strings.Contains(fmt.Sprint(m), "⚪ Over: ") && strings.Contains(fmt.Sprint(m), "fewer than two of them")
	}
	if !over {
		t.Errorf("two are paused and one is in other trouble, and it is still open: %+v", w.shown)
	}
	view, err := Inspect(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range view.Incidents {
		if i.Key.Class == "mass" {
			t.Errorf("still open: %+v", i)
		}
	}
}
