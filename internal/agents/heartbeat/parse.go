package heartbeat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// Parse parses the text of hb/<agent>.json. Only the time is required: invalid and unknown members are ignored.
func Parse(agent string, text []byte) (Observation, error) {
	if len(text) > FileLimit {
		return Observation{}, fmt.Errorf("it has more than %d bytes: %w", FileLimit, ErrNoBeat)
	}
	var m members
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&m); err != nil {
		return Observation{}, fmt.Errorf("%w: %w", ErrNoBeat, err)
	}
	if decoder.More() || m == nil {
		return Observation{}, fmt.Errorf("it is not one JSON object: %w", ErrNoBeat)
	}
	if m["t"] == nil {
		return Observation{}, fmt.Errorf("%w: it has no time \"t\"; 'outlive heartbeat' writes such files", ErrNoBeat)
	}
	o := Observation{Agent: agent, Kind: Beat}
	if err := m.read(&o); err != nil {
		return Observation{}, fmt.Errorf("%w: %w", ErrNoBeat, err)
	}
	return o, nil
}

// members are the members of a JSON object, each parsed separately so that an invalid one does not affect the others.
type members map[string]json.RawMessage

func (m members) read(o *Observation) (err error) {
	if o.Wall, err = m.time("t"); err != nil {
		return err
	}
	if s := State(m.text("state")); slices.Contains([]State{Working, Waiting, Idle, Stuck, Exiting, Done}, s) {
		o.State = s
	}
	o.Note = oneLine(m.text("note"))
	if phase, ok := m.number("phase", math.MaxInt32); ok {
		n := int(phase)
		o.Phase = &n
	}
	var progress members
	if json.Unmarshal(m["progress"], &progress) == nil {
		done, _ := progress.number("done", math.MaxInt32)
		total, _ := progress.number("total", math.MaxInt32)
		o.Progress = Progress{Done: int(done), Total: int(total)}
	}
	if pid, ok := m.number("pid", math.MaxInt32); ok {
		o.PID = int(pid)
		o.Start, _ = m.number("start", math.MaxUint64)
	}
	if next, err := time.ParseDuration(m.text("next")); err == nil {
		o.Next = promise(next)
	}
	return nil
}

func (m members) text(name string) string {
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// number parses a whole number from 0 to most, also one in quotes.
func (m members) number(name string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(strings.Trim(string(m[name]), `"`), 10, 64)
	return n, err == nil && n <= most
}

// time parses ISO 8601, or seconds or milliseconds since 1970.
func (m members) time(name string) (time.Time, error) {
	raw := strings.Trim(string(m[name]), `"`)
	t, err := piv.ParseTime(raw)
	if seconds, bad := strconv.ParseFloat(raw, 64); bad == nil {
		const firstMilliseconds = 1e11 // as seconds this is the year 5138
		if seconds >= firstMilliseconds {
			seconds /= 1000
		}
		if seconds > firstMilliseconds || seconds < 0 || math.IsNaN(seconds) {
			return time.Time{}, fmt.Errorf("%s is not a time", name)
		}
		t, err = time.UnixMicro(int64(seconds*1e6)), nil
	}
	// A time this far from the present is another kind of number.
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}, fmt.Errorf("%s is not a time", name)
	}
	return t.UTC(), nil
}
