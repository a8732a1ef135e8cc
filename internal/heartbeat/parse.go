package heartbeat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// Parse reads a sign of life in any known form of file: hb/<agent>.json, Gas Town's heartbeat (versions 1 and 2), and
// agent-deck's hook file. Only the time is indispensable: a member that makes no sense is as good as not there, and unknown
// ones are the future's.
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
	o := Observation{Agent: agent, Tier: SelfReport, Kind: Beat}
	var err error
	switch {
	case m["t"] != nil:
		err = m.own(&o)
	case m["ts"] != nil && m["status"] != nil:
		err = m.agentDeck(&o)
	case m["timestamp"] != nil:
		err = m.gasTown(&o)
	default:
		err = errors.New("it has no time")
	}
	if err != nil {
		return Observation{}, fmt.Errorf("%w: %w", ErrNoBeat, err)
	}
	return o, nil
}

// members of a JSON object, each to be read by itself: one that makes no sense does not spoil the rest.
type members map[string]json.RawMessage

func (m members) own(o *Observation) (err error) {
	o.Source = FromFile
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

// gasTown reads <town>/.runtime/heartbeats/<session>.json. Version 1 is a time only, which stands for work.
func (m members) gasTown(o *Observation) (err error) {
	o.Source, o.State = FromGasTown, Working
	if o.Wall, err = m.time("timestamp"); err != nil {
		return err
	}
	switch s := State(m.text("state")); s {
	case Idle, Stuck, Exiting:
		o.State = s
	case Working, "":
	default:
		o.State = ""
	}
	o.Note = oneLine(m.text("context"))
	if bead := oneLine(m.text("bead")); bead != "" {
		o.Note = oneLine(strings.TrimSpace(o.Note + " (bead " + bead + ")"))
	}
	return nil
}

// agentDeck reads ~/.agent-deck/hooks/<id>.json. Its "waiting" is the prompt, at which an agent also stands when it has
// nothing to do; it waits for a human only when it has asked for a permission.
func (m members) agentDeck(o *Observation) (err error) {
	o.Source = FromAgentDeck
	if o.Wall, err = m.time("ts"); err != nil {
		return err
	}
	event := oneLine(m.text("event"))
	switch m.text("status") {
	case "running":
		o.State = Working
	case "waiting":
		o.State = Idle
		if event == "PermissionRequest" {
			o.State = Waiting
		}
	case "idle":
		o.State = Idle
	case "dead":
		o.State = Exiting
	}
	if m.text("done_status") != "" {
		o.State = Done
	}
	o.Note, o.Run = event, oneLine(m.text("session_id"))
	if summary := oneLine(m.text("done_summary")); summary != "" {
		o.Note = summary
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

// number reads a whole number from 0 to most, also one in quotes.
func (m members) number(name string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(strings.Trim(string(m[name]), `"`), 10, 64)
	return n, err == nil && n <= most
}

// time reads ISO 8601, or the seconds or milliseconds since 1970.
func (m members) time(name string) (time.Time, error) {
	raw := strings.Trim(string(m[name]), `"`)
	t, err := piv.ParseTime(raw)
	if seconds, bad := strconv.ParseFloat(raw, 64); bad == nil {
		const firstMilliseconds = 1e11 // as seconds that is the year 5138
		if seconds >= firstMilliseconds {
			seconds /= 1000
		}
		if seconds > firstMilliseconds || seconds < 0 || math.IsNaN(seconds) {
			return time.Time{}, fmt.Errorf("%s is no time", name)
		}
		t, err = time.UnixMicro(int64(seconds*1e6)), nil
	}
	// What is far away from every clock's time is some other number.
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}, fmt.Errorf("%s is no time", name)
	}
	return t.UTC(), nil
}
