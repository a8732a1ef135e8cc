package incident

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawPolicy draws a policy that notifies someone.
func drawPolicy(t *rapid.T) Policy {
	p := Policy{
		AckTimeout: time.Duration(rapid.IntRange(1, 40).Draw(t, "ack timeout")) * time.Minute,
		Repeat:     time.Duration(rapid.IntRange(-1, 60).Draw(t, "repeat")) * time.Minute,
		Max:        rapid.IntRange(-1, 5).Draw(t, "max"),
		Location:   place(t, rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(t, "zone")),
		PIV:        rapid.Bool().Draw(t, "piv"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "tiers") {
		p.Tiers = append(p.Tiers, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "tier"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "quiet") {
		from := rapid.IntRange(0, 1439).Draw(t, "from")
		p.Quiet = append(p.Quiet, Quiet{Clock(from), Clock((from + rapid.IntRange(1, 1400).Draw(t, "length")) % 1440)})
	}
	return p
}

// A critical incident without an acknowledgement always reaches the last tier, whatever the channels do, whatever
// else is learnt, at any hour; and it ends by itself.
func TestUnansweredReachesTheLastTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		start := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 86400).Draw(t, "start")) * time.Second)
		now, timers := start, 0
		i, effects := Step(New("1", Key{Agent: "shop", Class: "crashed"}), Opened{Facts: Facts{Name: "shop", Severity: Critical}}, p, now)
		told := map[string]bool{}
		note := func() {
			for _, e := range effects {
				if s, ok := e.(Send); ok {
					for _, c := range s.Channels {
						told[c] = true
					}
				}
			}
		}
		for note(); i.State != Expired; note() {
			if timers++; timers > 300 {
				t.Fatalf("it never ends: %+v", i)
			}
			next := i.Next(p, now)
			if next.IsZero() || !next.After(now) {
				t.Fatalf("at %s it waits for %s: %+v", now, next, i)
			}
			if mid := now.Add(next.Sub(now) / 2); rapid.Bool().Draw(t, "event") {
				e := rapid.SampledFrom([]Event{Sent{"a"}, Sent{"b"}, Failed{"a"}, Failed{"b"}, Failed{"c"}, Timer{},
					Changed{Facts: Facts{Name: "shop", Severity: Critical, Details: "more"}}, Pressed{Verb: Details}}).Draw(t, "what")
				i, effects = Step(i, e, p, mid)
				now = mid
				continue
			}
			now = next.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "late")) * time.Second)
			i, effects = Step(i, Timer{}, p, now)
		}
		if i.Tier != len(p.Tiers)-1 {
			t.Fatalf("it ended at tier %d of %d", i.Tier+1, len(p.Tiers))
		}
		for _, tier := range p.Tiers {
			for _, c := range tier {
				if !told[c] {
					t.Fatalf("%s was never told: %v", c, told)
				}
			}
		}
		limit := time.Duration(len(p.Tiers))*(p.ackTimeout()+time.Minute) + time.Duration(p.repeats()+1)*(max(p.repeat(), 0)+time.Minute) + p.ackTimeout() + 5*time.Minute
		if took := now.Sub(start); took > limit {
			t.Fatalf("it took %s, more than %s", took, limit)
		}
	})
}

// In every case: in quiet hours only critical incidents make a sound, after the end there are only answers, every
// press is answered, no nonce works twice, and nothing is sent that must not be.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		severities := []Severity{Critical, Warning, Info}
		draw := func() Facts {
			return Facts{
				Name: "shop", Severity: rapid.SampledFrom(severities).Draw(t, "severity"), Restart: rapid.Bool().Draw(t, "restart"),
				Request: rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(t, "request"), Stop: true,
			}
		}
		now := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
		i := New("1", Key{Agent: "shop", Class: "waiting_permission"})
		used, keys, nonces := map[string]bool{}, map[string]bool{}, []string{"", "never"}
		word := func() string {
			n := fmt.Sprint("n", len(nonces))
			nonces = append(nonces, n)
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			var e Event
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0, 1:
				e = Opened{draw(), word()}
			case 2:
				e = Changed{draw(), rapid.SampledFrom([]string{"", word()}).Draw(t, "nonce")}
			case 3:
				e = Recovered{"x"}
			case 4:
				e = Gone{"x"}
			case 5:
				e = Failed{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "channel")}
			case 6:
				e = Sent{"a"}
			case 7, 8:
				e = Pressed{
					Verb:  rapid.SampledFrom([]Verb{Ack, Snooze, Details, Restart, Resume, Stop, Allow, Deny, "x"}).Draw(t, "verb"),
					Nonce: rapid.SampledFrom(append(nonces, i.Nonce)).Draw(t, "pressed"), By: "ada", Next: rapid.SampledFrom([]string{"", i.Nonce, word()}).Draw(t, "next"),
				}
			default:
				e = Timer{}
			}
			before := i
			var effects []Effect
			i, effects = Step(i, e, p, now)
			_, quiet := p.quiet(now)
			answers := 0
			for _, effect := range effects {
				_, reopens := e.(Opened)
				switch effect := effect.(type) {
				case Send:
					if quiet && i.Facts.Severity != Critical {
						t.Fatalf("%s: a sound in quiet hours: %+v", i.Facts.Severity, effect)
					}
					if keys[effect.Key+effect.Channels[0]] {
						t.Fatalf("%s was sent before", effect.Key)
					}
					keys[effect.Key+effect.Channels[0]] = true
				case Edit:
					if quiet && i.Facts.Severity != Critical && !effect.InPlace {
						t.Fatalf("%s: a change in quiet hours that may make a sound", i.Facts.Severity)
					}
				case Do:
					press := e.(Pressed)
					if used[press.Nonce] || press.Nonce == "" || press.Nonce != before.Nonce {
						t.Fatalf("the word %q did something: used %v, present %q", press.Nonce, used, before.Nonce)
					}
					if (press.Verb == Allow || press.Verb == Deny) != (effect.Request != "") || effect.Request != "" && effect.Request != before.Facts.Request {
						t.Fatalf("%s answers %q, shown was %q", press.Verb, effect.Request, before.Facts.Request)
					}
					used[press.Nonce] = true
				case Answer:
					answers++
				}
				if _, isAnswer := effect.(Answer); before.State == Resolved && !isAnswer && !reopens {
					t.Fatalf("after the end: %T %+v", effect, effect)
				}
			}
			if _, press := e.(Pressed); press != (answers == 1) || answers > 1 {
				t.Fatalf("%T: %d answers", e, answers)
			}
			settled := i
			for range len(p.Tiers) + 2 { // two things may be due at once
				if next := settled.Next(p, now); !next.IsZero() && !next.After(now) {
					settled, _ = Step(settled, Timer{}, p, now)
				}
			}
			if next := settled.Next(p, now); !next.IsZero() && !next.After(now) {
				t.Fatalf("it waits for %s at %s: a timer without an end", next, now)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "pause")) * time.Second)
		}
	})
}
