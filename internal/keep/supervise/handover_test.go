package supervise

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// saved carries a machine through JSON; nil where that is not possible now.
func saved(t *rapid.T, m *Machine) *Machine {
	s, ok := m.Save()
	if !ok {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Saved
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return Restore(m.opts, back)
}

// everything compares two machines field by field, those included that a later change will add.
var everything = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(stopSequence{}, "out"),
}

// TestASavedMachineGoesOn lets a machine live as in TestModel and replaces it by its saved self whenever that is
// possible: it is the same to the last field, and lives on by the same rules.
func TestASavedMachineGoesOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, err := backoff.Preset(rapid.SampledFrom(backoff.PresetNames()).Draw(rt, "policy"))
		if err != nil {
			rt.Fatal(err)
		}
		opts := rulesOf78()
		opts.Backoff = p
		opts.Standby = rapid.IntRange(0, 1).Draw(rt, "standby")
		w := &world{Machine: New(opts), rt: rt, now: t0, standby: opts.Standby, beside: map[int]*modelSpare{}}
		w.tell(Start{})
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			w.happen()
			w.pass(w.draw("pause", rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 24 * time.Hour}).Draw(rt, "scale")))
			if next := saved(rt, w.Machine); next != nil {
				if diff := cmp.Diff(w.Machine, next, everything); diff != "" {
					rt.Fatalf("saved (-was +is):\n%s", diff)
				}
				w.Machine = next
			}
		}
		w.stop()
		w.pass(longestStop + longestSweep)
		if !w.finished {
			rt.Fatalf("a stop did not end it: %s", w.State())
		}
	})
}

func TestOnlyAServingMachineAloneIsSaved(t *testing.T) {
	up := func(t *testing.T) *story { return begin(t, Options{Standby: 1}).up() }
	for name, c := range map[string]struct {
		at   func(t *testing.T) *story
		want bool
	}{
		"not started":      {func(t *testing.T) *story { return &story{t: t, Machine: New(Options{}), now: t0} }, false},
		"asked nothing":    {func(t *testing.T) *story { return begin(t, Options{}) }, true},
		"starting":         {func(t *testing.T) *story { return begin(t, Options{}).tell(Handshake{}) }, false},
		"serving":          {up, true},
		"with a spare":     {func(t *testing.T) *story { return up(t).tell(Introduced{true}) }, false},
		"spare dismissed":  {func(t *testing.T) *story { return up(t).tell(Introduced{true}, Introduced{}) }, true},
		"reload under way": {func(t *testing.T) *story { return up(t).tell(wishOf(true)) }, false},
		"draining":         {func(t *testing.T) *story { return up(t).tell(wishOf(false)) }, false},
		"crashed":          {func(t *testing.T) *story { return up(t).tell(Exited{Code: 1}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := c.at(t).Save(); ok != c.want {
				t.Errorf("can be saved: %v, want %v", ok, c.want)
			}
		})
	}
}

func wishOf(overlap bool) Restart {
	return Restart{Cause: Requested, Source: SourceSignal, Reason: "r", Overlap: overlap}
}
