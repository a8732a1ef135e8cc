package backoff

import (
	"fmt"
	"strings"
	"time"
)

// Tier is one step of a curve that goes by the number of restarts (WD-12).
type Tier struct {
	UpTo  int           // the last restart this tier is for; 0: all further ones
	Delay time.Duration // the wait
}

// Policy is how a process that ends is started again. Take one of the presets and change fields; a policy without a
// curve (Initial 0 and no Tiers), such as the zero value, stands for [Transparent].
type Policy struct {
	// Name is shown to people (default "", transparent).
	Name string

	// FirstAtOnce makes the first crash after a healthy time restart without delay (default false; transparent: true).
	FirstAtOnce bool
	// Initial is the first delay; each further one is twice as long (transparent: 250 ms, exponential: 1 s).
	Initial time.Duration
	// Max is the longest delay before jitter; 0 means no limit (transparent: 30 s, exponential: 60 s).
	Max time.Duration
	// Jitter is the part of the delay that is added at most, by chance (default 0; transparent, exponential: 0.5).
	Jitter float64
	// Tiers, if any, replace the doubling curve: the delay goes by the lifetime number of restarts (tiered). They are in rising
	// order, and the last one is for all further restarts.
	Tiers []Tier

	// ResetAfter is how long a process must be ready without a break until its failures are forgotten; 0 is never
	// (transparent, exponential: 60 s).
	ResetAfter time.Duration

	// MaxRestarts is how many restarts after crashes are allowed within Window; one more opens the breaker.
	// 0 is unlimited (transparent: 10, exponential and tiered: 0).
	MaxRestarts int
	// Window is the time that MaxRestarts counts in; 0 counts since the failures were last forgotten
	// (transparent: 10 min).
	Window time.Duration
	// OpenFor is the time from the opening of the breaker to the one try that may close it; it doubles with each
	// opening. 0: it opens for good (transparent: 1 min).
	OpenFor time.Duration
	// OpenMax is the longest such time; 0 means no limit (transparent: 15 min).
	OpenMax time.Duration

	// Floor is the least time between two requested restarts (all presets: 1 s, WD-11).
	Floor time.Duration
	// RequestPause is waited before every requested restart (default 0; tiered: 500 ms, WD-9).
	RequestPause time.Duration
}

// Transparent is the default: the first crash after a healthy minute restarts at once, then 250 ms × 2^n, cap 30 s,
// +0–50 % jitter; more than 10 restarts in 10 minutes open the breaker for 1 minute, doubling to 15.
func Transparent() Policy {
	return Policy{
		Name: "transparent", FirstAtOnce: true,
		Initial: 250 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.5, ResetAfter: time.Minute,
		MaxRestarts: 10, Window: 10 * time.Minute, OpenFor: time.Minute, OpenMax: 15 * time.Minute,
		Floor: time.Second,
	}
}

// Exponential is the policy of GW-4: 1 s × 2^(n-1), cap 60 s, +0–50 % jitter of the capped
// delay, counter reset after 60 s healthy, restarts unlimited.
func Exponential() Policy {
	return Policy{
		Name:    "exponential",
		Initial: time.Second, Max: time.Minute, Jitter: 0.5, ResetAfter: time.Minute,
		Floor: time.Second,
	}
}

// Tiered is the policy of WD-12: 1 s for restarts 1–3, 5 s for 4–10, 10 s after, by the lifetime number of restarts;
// never reset, no jitter, never gives up; 500 ms clean-up pause before a requested restart.
func Tiered() Policy {
	return Policy{
		Name:  "tiered",
		Tiers: []Tier{{UpTo: 3, Delay: time.Second}, {UpTo: 10, Delay: 5 * time.Second}, {Delay: 10 * time.Second}},
		Floor: time.Second, RequestPause: 500 * time.Millisecond,
	}
}

// presets are the policies by name, in the order people are told of them: the default first.
func presets() []Policy { return []Policy{Transparent(), Exponential(), Tiered()} }

// PresetNames are the names that [Preset] knows, the default first.
func PresetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.Name)
	}
	return names
}

// Preset returns the preset of that name. The error for any other name lists the valid ones.
func Preset(name string) (Policy, error) {
	for _, p := range presets() {
		if p.Name == name {
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("unknown backoff %q: choose one of %s", name, strings.Join(PresetNames(), ", "))
}

// orDefault returns p, or Transparent if p has no curve.
func (p Policy) orDefault() Policy {
	if p.Initial == 0 && len(p.Tiers) == 0 {
		return Transparent()
	}
	return p
}

// mostRestarts is the largest budget that can be given: each restart of it is remembered.
const mostRestarts = 100_000

// Validate refuses what cannot be of the values that people give: the budget and the delay of a tier. The error says what to
// change. A budget whose restarts with their shortest delays take longer than the window can never be spent: such a breaker would
// silently never open.
func (p Policy) Validate() error {
	p = p.orDefault()
	if p.MaxRestarts < 0 || p.MaxRestarts > mostRestarts {
		return fmt.Errorf("backoff policy: the number of restarts is %d: give 0 for unlimited, or a number up to %d",
			p.MaxRestarts, mostRestarts)
	}
	for i, t := range p.Tiers {
		if t.Delay < 0 {
			return fmt.Errorf("backoff policy: tier %d waits %s: give a time of 0 or more", i+1, t.Delay)
		}
	}
	if p.MaxRestarts == 0 || p.Window == 0 {
		return nil
	}
	var sum time.Duration
	for n := 1; n <= p.MaxRestarts; n++ {
		if sum += p.curve(n, n); sum >= p.Window {
			return fmt.Errorf("backoff policy: %d restarts in %s can never happen: %d of them take %s with their shortest delays; "+
				"allow fewer restarts or shorten the longest delay",
				p.MaxRestarts, p.Window, n, sum)
		}
	}
	return nil
}

// curve is the delay without jitter after that many failures in a row and restarts over the lifetime, this one
// included in both.
func (p Policy) curve(failures, restarts int) time.Duration {
	for _, t := range p.Tiers {
		if t.UpTo == 0 || restarts <= t.UpTo {
			return t.Delay
		}
	}
	doublings := failures - 1
	if p.FirstAtOnce {
		if failures <= 1 {
			return 0
		}
		doublings--
	}
	return double(p.Initial, doublings, p.Max)
}

// double returns d × 2^n, at most limit if that is not 0, and never so much that a time could overflow.
func double(d time.Duration, n int, limit time.Duration) time.Duration {
	const longest = 365 * 24 * time.Hour
	if limit == 0 {
		limit = longest
	}
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, limit)
}
