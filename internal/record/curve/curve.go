package curve

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Minutes is how many points a curve has: a day.
const Minutes = 24 * 60

// Point is one minute of a server.
type Point struct {
	Known  bool    // false: a gap
	Calls  float32 // that ended in it
	Errors float32 // of these: errors of server and tool, calls that no server has begun, whose outcome is unknown, or that took too long
	P50    float32 // seconds that half of the calls took at most; 0: none was answered
	P99    float32 // the same of 99 of 100
	Memory float32 // bytes of the process and all it started; 0: not known
	CPU    float32 // processors that they kept busy: 1 is one
}

// Took is how long the seconds of a point are.
func Took(seconds float32) time.Duration {
	return time.Duration(math.Round(float64(seconds)*1e6)) * time.Microsecond
}

// Curve is the last day of a server. The zero value is empty.
type Curve struct {
	last   int64 // the newest minute, counted from 1970; 0: there is none
	points [Minutes]Point
}

// minuteOf is the number of the minute that has a time in it.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// place is where a minute is kept.
func place(minute int64) int { return int(minute % Minutes) }

// Ahead reports whether a minute is so far ahead that the clock was in the future then, and was not only set back a little.
func Ahead(minute, now int64) bool { return minute-now > 2*Minutes }

// passes reports whether the curve has no room for a minute any more.
func (c *Curve) passes(minute int64) bool { return minute <= c.last && !Ahead(c.last, minute) }

// add adds the point of a minute. What lies between that and the last one is a gap; an earlier minute is passed over. A curve of the
// future begins anew.
func (c *Curve) add(minute int64, p Point) {
	if c.passes(minute) {
		return
	}
	if c.last > minute {
		*c = Curve{}
	}
	for m := max(c.last+1, minute-Minutes); m < minute; m++ {
		c.points[place(m)] = Point{}
	}
	c.points[place(minute)], c.last = p, minute
}

// at is the point of a minute; a gap if it is too old, or has not come.
func (c *Curve) at(minute int64) Point {
	if minute > c.last || minute <= c.last-Minutes || minute <= 0 {
		return Point{}
	}
	return c.points[place(minute)]
}

// Last are the points of the minutes before a time, the oldest first: the last is of the minute before that of now.
func (c *Curve) Last(minutes int, now time.Time) []Point {
	list := make([]Point, minutes)
	for n := range list {
		list[n] = c.at(minuteOf(now) - int64(minutes-n))
	}
	return list
}

// Newest is the newest minute that is known of; 0: there is none.
func (c *Curve) Newest() int64 {
	if c == nil {
		return 0
	}
	return c.last
}

// after is what has come after a minute.
func (c *Curve) after(minute int64) Part {
	first := max(minute+1, c.last-Minutes+1)
	for first < c.last && !c.at(first).Known {
		first++ // whoever takes it up has a gap there
	}
	p := Part{First: first}
	for m := first; m <= c.last; m++ {
		p.Points = append(p.Points, c.at(m))
	}
	return p
}

// With is the curve with what has come since. c may be nil: nothing is known before.
func (c *Curve) With(p Part) *Curve {
	grown := &Curve{}
	if c != nil {
		*grown = *c
	}
	for n, one := range p.Points {
		grown.add(p.First+int64(n), one)
	}
	return grown
}

// Part is a part of a curve, on its way from one outlive to another.
type Part struct {
	First  int64 // the minute of the first point
	Points []Point
}

// written is a part as JSON: a gap is null.
type written struct {
	First  int64         `json:"first"`
	Points []*[6]float32 `json:"points"` // calls, errors, p50, p99, memory, cpu
}

// MarshalJSON writes what [Part.UnmarshalJSON] reads.
func (p Part) MarshalJSON() ([]byte, error) {
	w := written{First: p.First, Points: make([]*[6]float32, len(p.Points))}
	for n, one := range p.Points {
		if one.Known {
			w.Points[n] = &[6]float32{one.Calls, one.Errors, one.P50, one.P99, one.Memory, one.CPU}
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads a part. One that is longer than a curve, or of no time, is an error.
func (p *Part) UnmarshalJSON(text []byte) error {
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	if len(w.Points) > Minutes || w.First < 0 || w.First > math.MaxInt64-Minutes {
		return fmt.Errorf("curve: %d points from minute %d on", len(w.Points), w.First)
	}
	*p = Part{First: w.First, Points: make([]Point, len(w.Points))}
	for n, v := range w.Points {
		if v != nil {
			p.Points[n] = Point{true, v[0], v[1], v[2], v[3], v[4], v[5]}
		}
	}
	return nil
}
