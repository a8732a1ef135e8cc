package backoff

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of this package.
var (
	// ErrUnknownPreset: [Preset] was given a name that is not a preset.
	ErrUnknownPreset = errors.New("unknown backoff")
	// ErrPolicy: a policy contradicts itself; the message says what to change.
	ErrPolicy = errors.New("backoff policy")
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
	// Tiers, if any, replace the doubling curve: the delay goes by the lifetime number of restarts (tiered).
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

// Preset returns the preset of that name. Any other name is an [ErrUnknownPreset] that lists the valid ones.
func Preset(name string) (Policy, error) {
	for _, p := range presets() {
		if p.Name == name {
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("%w %q: choose one of %s", ErrUnknownPreset, name, strings.Join(PresetNames(), ", "))
}

// orDefault returns p, or Transparent if p has no curve.
func (p Policy) orDefault() Policy {
	if p.Initial == 0 && len(p.Tiers) == 0 {
		return Transparent()
	}
	return p
}

// Validate refuses a policy that contradicts itself. The error wraps [ErrPolicy] and says what to change.
func (p Policy) Validate() error {
	p = p.orDefault()
	if err := p.validateSigns(); err != nil {
		return err
	}
	if p.Max > 0 && p.Initial > p.Max {
		return fmt.Errorf("%w: the first delay %s is longer than the longest %s: lower the first or raise the longest",
			ErrPolicy, p.Initial, p.Max)
	}
	if p.OpenMax > 0 && p.OpenFor > p.OpenMax {
		return fmt.Errorf("%w: the first open time %s is longer than the longest %s: lower the first or raise the longest",
			ErrPolicy, p.OpenFor, p.OpenMax)
	}
	if err := p.validateTiers(); err != nil {
		return err
	}
	return p.validateReach()
}

// mostRestarts is the largest budget that can be given: each restart of it is remembered.
const mostRestarts = 100_000

func (p Policy) validateSigns() error {
	for _, d := range []struct {
		what string
		d    time.Duration
	}{
		{"the first delay", p.Initial}, {"the longest delay", p.Max}, {"the healthy time", p.ResetAfter},
		{"the window", p.Window}, {"the open time", p.OpenFor}, {"the longest open time", p.OpenMax},
		{"the floor between requested restarts", p.Floor}, {"the pause before a requested restart", p.RequestPause},
	} {
		if d.d < 0 {
			return fmt.Errorf("%w: %s is %s: give a time of 0 or more", ErrPolicy, d.what, d.d)
		}
	}
	if p.MaxRestarts < 0 || p.MaxRestarts > mostRestarts {
		return fmt.Errorf("%w: the number of restarts is %d: give 0 for unlimited, or a number up to %d",
			ErrPolicy, p.MaxRestarts, mostRestarts)
	}
	if !(p.Jitter >= 0 && p.Jitter <= 1) {
		return fmt.Errorf("%w: the jitter is %v: give a part between 0 and 1", ErrPolicy, p.Jitter)
	}
	return nil
}

func (p Policy) validateTiers() error {
	last := 0
	for i, t := range p.Tiers {
		switch final := i == len(p.Tiers)-1; {
		case t.Delay < 0:
			return fmt.Errorf("%w: tier %d waits %s: give a time of 0 or more", ErrPolicy, i+1, t.Delay)
		case final && t.UpTo != 0:
			return fmt.Errorf("%w: the last tier ends at restart %d: let it be for all further ones (0)", ErrPolicy, t.UpTo)
		case !final && t.UpTo <= last:
			return fmt.Errorf("%w: tier %d ends at restart %d, the one before at %d: put them in rising order",
				ErrPolicy, i+1, t.UpTo, last)
		}
		last = t.UpTo
	}
	return nil
}

// validateReach refuses a budget that can never be spent, because its restarts with their shortest delays take longer
// than the window: such a breaker would silently never open.
func (p Policy) validateReach() error {
	if p.MaxRestarts == 0 || p.Window == 0 {
		return nil
	}
	var sum time.Duration
	for n := 1; n <= p.MaxRestarts; n++ {
		if sum += p.curve(n, n); sum >= p.Window {
			return fmt.Errorf("%w: %d restarts in %s can never happen: %d of them take %s with their shortest delays; "+
				"allow fewer restarts or shorten the longest delay",
				ErrPolicy, p.MaxRestarts, p.Window, n, sum)
		}
	}
	return nil
}

// curve is the delay without jitter after that many failures in a row and restarts over the lifetime, this one
// included in both.
func (p Policy) curve(failures, restarts int) time.Duration {
	if len(p.Tiers) > 0 {
		for _, t := range p.Tiers {
			if t.UpTo == 0 || restarts <= t.UpTo {
				return t.Delay
			}
		}
		return p.Tiers[len(p.Tiers)-1].Delay
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
