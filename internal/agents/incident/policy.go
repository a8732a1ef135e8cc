package incident

import (
	"cmp"
	"time"
)

const (
	ackFor    = 4 * time.Hour    // an acknowledgement holds
	snoozeFor = time.Hour        // a press of Snooze holds
	reopenFor = 10 * time.Minute // after its end the same trouble opens an incident again
)

// Policy is the owner's settings. With the zero value nobody is notified; everything else has a default.
type Policy struct {
	// Tiers are the channels to notify, those of the first tier first. None is empty.
	Tiers [][]string
	// AckTimeout is how long to wait for an acknowledgement before the next tier is notified, too. 0: 15 minutes.
	AckTimeout time.Duration
	// Repeat is the interval of reminders to those who were notified. 0: 30 minutes; negative: never.
	Repeat time.Duration
	// Max is the maximum number of reminders. 0: 3; negative: none.
	Max int
	// Quiet are the periods in which only critical incidents are sent.
	Quiet []Quiet
	// Location is the time zone. nil: UTC.
	Location *time.Location
	// Home is what leads a command to the monitor's home, such as " --home DIR". "": commands find it by themselves.
	Home string
	// PIV selects messages in the words of PIV-11.
	PIV bool
	// Version is outlive's. What another one has said in other words is changed in place.
	Version string
}

func (p Policy) ackTimeout() time.Duration { return cmp.Or(p.AckTimeout, 15*time.Minute) }
func (p Policy) repeat() time.Duration     { return cmp.Or(p.Repeat, 30*time.Minute) }

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

// quiet reports whether only critical incidents may be sent now, and until when.
func (p Policy) quiet(now time.Time) (until time.Time, yes bool) {
	until = now
	for range maxQuiet { // a period may end where the next begins
		end, in := p.quietest(until)
		if !in {
			return until, until.After(now)
		}
		until = end
	}
	return until, true
}

// Silent reports whether only critical incidents may be sent now.
func (p Policy) Silent(now time.Time) bool {
	_, quiet := p.quiet(now)
	return quiet
}

// quietest returns the latest end of the periods that include a time.
func (p Policy) quietest(at time.Time) (end time.Time, in bool) {
	for _, q := range p.Quiet {
		if e, ok := q.At(at, p.location()); ok && e.After(end) {
			end, in = e, true
		}
	}
	return end, in
}

// maxQuiet is how many periods without a gap are followed. More would mean silence for days.
const maxQuiet = 8
