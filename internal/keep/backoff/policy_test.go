package backoff

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPresetsAreTheContract(t *testing.T) {
	want := map[string]Policy{
		"transparent": {
			Name: "transparent", FirstAtOnce: true, Initial: 250 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5,
			ResetAfter: 60 * time.Second, MaxRestarts: 10, Window: 10 * time.Minute,
			OpenFor: time.Minute, OpenMax: 15 * time.Minute, Floor: time.Second,
		},
		"exponential": {
			Name: "exponential", Initial: time.Second, Max: 60 * time.Second, Jitter: 0.5,
			ResetAfter: 60 * time.Second, Floor: time.Second,
		},
		"tiered": {
			Name: "tiered", Tiers: []Tier{{3, time.Second}, {10, 5 * time.Second}, {0, 10 * time.Second}},
			Floor: time.Second, RequestPause: 500 * time.Millisecond,
		},
	}
	for name, policy := range want {
		got, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(policy, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownPresetListsTheValidOnes(t *testing.T) {
	_, err := Preset("quadratic")
	if err == nil {
		t.Fatal("it is taken for a preset")
	}
	for _, word := range []string{"unknown backoff", `"quadratic"`, "transparent", "exponential", "tiered"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is missing in %q", word, err)
		}
	}
}

func TestPolicyWithoutCurveIsTransparent(t *testing.T) {
	if diff := cmp.Diff(Transparent(), NewTracker(Policy{}).Policy()); diff != "" {
		t.Error(diff)
	}
	if err := (Policy{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateSaysWhatToDo(t *testing.T) {
	with := func(change func(*Policy)) Policy {
		p := Transparent()
		change(&p)
		return p
	}
	tiers := func(tiers ...Tier) Policy { return Policy{Tiers: tiers} }
	for name, c := range map[string]struct {
		policy Policy
		says   string // "": it is fine
	}{
		"unlimited":            {with(func(p *Policy) { p.MaxRestarts = 0 }), ""},
		"unlimited, no window": {with(func(p *Policy) { p.MaxRestarts, p.Window = 0, 0 }), ""},
		"limit without window": {with(func(p *Policy) { p.MaxRestarts, p.Window = 5000, 0 }), ""},
		"unreachable":          {with(func(p *Policy) { p.MaxRestarts = 100 }), "can never happen"},
		"unreachable by delay": {with(func(p *Policy) { p.Initial, p.Max = time.Minute, time.Hour }), "allow fewer restarts"},
		"just unreachable":     {Policy{Initial: time.Second, Max: time.Second, MaxRestarts: 10, Window: 10 * time.Second}, "can never happen"},
		"just reachable":       {Policy{Initial: time.Second, Max: time.Second, MaxRestarts: 9, Window: 10 * time.Second}, ""},
		"negative restarts":    {with(func(p *Policy) { p.MaxRestarts = -1 }), "give 0 for unlimited"},
		"too many restarts":    {with(func(p *Policy) { p.MaxRestarts = math.MaxInt }), "give 0 for unlimited"},
		"tier waits backwards": {tiers(Tier{0, -1}), "tier 1 waits -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.policy.Validate()
			if c.says == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}
