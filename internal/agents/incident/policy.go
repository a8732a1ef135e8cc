package incident

import "time"

// Policy is what the owner has set. The zero value tells nobody; everything else has a default.
type Policy struct {
	// Tiers are the channels to tell, first those of the first tier.
	Tiers [][]string
	// AckTimeout is how long a tier has until the next one is told too. 0: 15 minutes.
	AckTimeout time.Duration
	// Repeat is how long until those who have been told are told again. 0: 30 minutes; negative: never.
	Repeat time.Duration
	// Max is how often that is done. 0: 3; negative: never.
	Max int
	// AckFor is how long an acknowledgement holds. 0: 4 hours.
	AckFor time.Duration
	// Snooze is how long the button of that name holds. 0: 1 hour.
	Snooze time.Duration
	// Reopen is how long after its end trouble is the same incident. 0: 10 minutes.
	Reopen time.Duration
	// Quiet are the hours in which only what is critical is told.
	Quiet []Quiet
	// Location is where the hours are those of the day. nil: UTC.
	Location *time.Location
	// PIV writes messages in the words of PIV-11.
	PIV bool
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func (p Policy) ackTimeout() time.Duration { return or(p.AckTimeout, 15*time.Minute) }
func (p Policy) repeat() time.Duration     { return or(p.Repeat, 30*time.Minute) }
func (p Policy) ackFor() time.Duration     { return or(p.AckFor, 4*time.Hour) }
func (p Policy) snooze() time.Duration     { return or(p.Snooze, time.Hour) }
func (p Policy) reopen() time.Duration     { return or(p.Reopen, 10*time.Minute) }

func (p Policy) repeats() int {
	if p.Max == 0 {
		return 3
	}
	return max(p.Max, 0)
}

func (p Policy) location() *time.Location {
	if p.Location == nil {
		return time.UTC
	}
	return p.Location
}

// quiet reports whether only what is critical may be told now, and until when.
func (p Policy) quiet(now time.Time) (until time.Time, yes bool) {
	until = now
	for range maxQuiet { // one ends where the next begins
		end, in := p.quietest(until)
		if !in {
			return until, until.After(now)
		}
		until = end
	}
	return until, true
}

// Silent reports whether nothing but what is critical may be told now.
func (p Policy) Silent(now time.Time) bool {
	_, quiet := p.quiet(now)
	return quiet
}

// quietest is the end of the period that holds longest at that time.
func (p Policy) quietest(at time.Time) (end time.Time, in bool) {
	for _, q := range p.Quiet {
		if e, ok := q.At(at, p.location()); ok && e.After(end) {
			end, in = e, true
		}
	}
	return end, in
}

// maxQuiet is how many periods may follow each other without a pause: nobody wants to be left alone for weeks.
const maxQuiet = 8
