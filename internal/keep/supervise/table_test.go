package supervise

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 1, 13, 22, 30, 0, 0, time.UTC)

// at is when a row's path begins; the event of a cell comes 10 ms after the path's end.
var at = t0.Add(time.Hour)

// second in a path is the passing of one: the floor between two requested restarts.
type second struct{}

func (second) about() (int, bool) { return 0, false }

// tableRow is a row of a table of every cell: events that lead to it, all of them at `at` but for the seconds between them.
type tableRow struct {
	name string
	path []Event
}

// rows are the states, Stopping by its steps, and what leads to each one, all of it at `at`.
var rows = []tableRow{
	{"stopped", nil},
	{"starting", []Event{Start{}}},
	{"handshake", []Event{Start{}, Handshake{0}}},
	{"ready", []Event{Start{}, Ready{0}}},
	{"draining", []Event{Start{}, Ready{0}, Restart{Cause: Requested, Source: SourceTool}}},
	{"answering", []Event{Start{}, Handshake{0}, Stop{ClientEOF}}},
	{"closing", []Event{Start{}, Ready{0}, Stop{ClientEOF}, Drained{0}}},
	{"ending", []Event{Start{}, Ready{0}, Restart{Cause: Requested, Source: SourceTool}, Drained{0}}},
	{"killed", []Event{Start{}, StdoutClosed{0}}},
	{"sweeping", []Event{Start{}, Exited{Code: 1}}},
	{"leaving", []Event{Start{}, Exited{Code: 1}, Stop{}}},
	{"backoff", []Event{Start{}, Exited{Code: 1}, TreeGone{0}, Exited{Gen: 1, Code: 1}, TreeGone{1}}},
	{"failed", []Event{Start{}, Exited{Code: 78}, TreeGone{0}}},
	{"over", []Event{Stop{}}},
}

// allRows are those of every table.
func allRows() []tableRow { return slices.Concat(rows, spareRows, sleepRows) }

var columns = []struct {
	name string
	ev   func(gen, spare int) Event
}{
	{"Start", func(int, int) Event { return Start{} }},
	{"SpawnFail", func(g, _ int) Event { return SpawnFailed{Gen: g} }},
	{"Handshake", func(g, _ int) Event { return Handshake{g} }},
	{"Ready", func(g, _ int) Event { return Ready{g} }},
	{"Refused", func(g, _ int) Event { return Refused{Gen: g} }},
	{"Drained", func(g, _ int) Event { return Drained{g} }},
	{"StdoutClosed", func(g, _ int) Event { return StdoutClosed{g} }},
	{"Exit 0", func(g, _ int) Event { return Exited{Gen: g} }},
	{"Exit 42", func(g, _ int) Event { return Exited{Gen: g, Code: 42} }},
	{"Exit 1", func(g, _ int) Event { return Exited{Gen: g, Code: 1} }},
	{"Gone", func(g, _ int) Event { return TreeGone{g} }},
	{"Restart", func(int, int) Event { return Restart{Cause: Requested, Source: SourceTool} }},
	{"Replace", func(int, int) Event { return Restart{Cause: Replace} }},
	{"EOF", func(int, int) Event { return Stop{ClientEOF} }},
	{"Signal", func(int, int) Event { return Stop{Signal} }},
	{"Tick", nil},

	{"Replayable", func(int, int) Event { return Replayable{true} }},
	{"Forgotten", func(int, int) Event { return Replayable{} }},
	{"SpareReady", func(_, s int) Event { return SpareReady{s} }},
	{"SpareFailed", func(_, s int) Event { return SpareFailed{s, "it died"} }},
	{"Condemned", func(g, _ int) Event { return MarkUnhealthy{g, Unhealthy, "no answer"} }},
	{"Overlap", func(int, int) Event { return overlap }},
	{"Limit", func(int, int) Event { return limit }},
	{"Marked", func(int, int) Event { return marked }},
	{"Sleep", func(g, _ int) Event { return Sleep{g, "idle"} }},
}

var (
	overlap = Restart{Cause: Requested, Source: SourceTool, Reason: "new code", Overlap: true}
	limit   = Restart{Cause: Requested, Source: SourceLimit, Reason: "too old", Overlap: true}
)

// table is every cell: the state that follows, the actions (D begin drain, I close stdin, T terminate, K kill, S spawn,
// F finish; a report is implied by a change of state) and the time until the deadline. A dot: nothing happens at all.
const table = `
| row       | Start      | SpawnFail    | Handshake    | Ready         | Refused          | Drained        | StdoutClosed | Exit 0   | Exit 42  | Exit 1   | Gone       | Restart          | Replace          | EOF             | Signal           | Tick             |
| stopped   | starting S | .            | .            | .             | .                | .              | .            | .        | .        | .        | .          | starting S       | .                | stopped F       | stopped F        | .                |
| starting  | .          | backoff 50ms | starting 30s | ready 1m0s    | stopping T 300ms | .              | stopping K   | sweeping | sweeping | sweeping | .          | stopping T 300ms | stopping T 300ms | stopping I 1.5s | stopping T 600ms | .                |
| handshake | .          | backoff 50ms | starting 30s | ready 1m0s    | stopping T 300ms | .              | stopping K   | sweeping | sweeping | sweeping | .          | stopping T 300ms | stopping T 300ms | stopping I 10s  | stopping T 600ms | stopping IT 2s   |
| ready     | .          | .            | starting 30s | .             | .                | .              | stopping K   | sweeping | sweeping | sweeping | .          | stopping D 1s    | stopping T 300ms | stopping I 10s  | stopping T 600ms | ready            |
| draining  | .          | .            | .            | .             | .                | stopping IT 2s | .            | sweeping | sweeping | sweeping | .          | .                | stopping T 300ms | stopping I 10s  | stopping T 600ms | stopping IT 2s   |
| answering | .          | .            | .            | .             | stopping T 500ms | stopping 1.5s  | .            | sweeping | sweeping | sweeping | .          | .                | .                | .               | stopping T 600ms | stopping T 500ms |
| closing   | .          | .            | .            | .             | .                | .              | .            | sweeping | sweeping | sweeping | .          | .                | .                | .               | stopping T 600ms | stopping T 500ms |
| ending    | .          | .            | .            | .             | .                | .              | .            | sweeping | sweeping | sweeping | .          | .                | stopping 300ms   | stopping 500ms  | stopping 600ms   | stopping K       |
| killed    | .          | .            | .            | .             | .                | .              | .            | sweeping | sweeping | sweeping | .          | .                | .                | .               | .                | .                |
| sweeping  | .          | .            | .            | .             | .                | .              | .            | .        | .        | .        | starting S | .                | .                | .               | .                | .                |
| leaving   | .          | .            | .            | .             | .                | .              | .            | .        | .        | .        | stopped F  | .                | .                | .               | .                | .                |
| backoff   | .          | .            | .            | .             | .                | .              | .            | .        | .        | .        | .          | starting S       | .                | stopped F       | stopped F        | starting S       |
| failed    | .          | .            | .            | .             | .                | .              | .            | .        | .        | .        | .          | starting S       | .                | stopped F       | stopped F        | .                |
| over      | .          | .            | .            | .             | .                | .              | .            | .        | .        | .        | .          | .                | .                | .               | .                | .                |
`

func TestEveryCell(t *testing.T) {
	cells := parseTable(t)
	for _, row := range allRows() {
		for _, col := range columns {
			t.Run(row.name+" "+col.name, func(t *testing.T) {
				got := cell(row.path, col.ev)
				if want := cells[row.name][col.name]; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// cell returns what a machine in the row's state makes of an event, or of the deadline if there is no event.
func cell(path []Event, event func(gen, spare int) Event) string {
	opts := rulesOf78()
	opts.Standby = 1
	m := New(opts)
	now := at
	for _, ev := range path {
		if _, passes := ev.(second); passes {
			now = now.Add(time.Second)
			m.Tick(now, 0)
			continue
		}
		m.Step(now, 0, ev)
	}
	now, before, deadline := now.Add(10*time.Millisecond), m.Snapshot(), m.Deadline()
	var actions []Action
	if event != nil {
		actions = m.Step(now, 0, event(max(m.gen, 0), spareOf(m)))
	} else {
		now = deadline
		actions = m.Tick(now, 0)
	}
	if len(actions) == 0 && cmp.Equal(before, m.Snapshot()) && m.Deadline().Equal(deadline) {
		return "."
	}
	text := m.State().String()
	if a := letters(actions); a != "" {
		text += " " + a
	}
	if !m.Deadline().IsZero() {
		text += " " + m.Deadline().Sub(now).String()
	}
	return text + marks(m)
}

func letters(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		switch a.(type) {
		case Spawn:
			b.WriteByte('S')
		case SpawnSpare:
			b.WriteByte('P')
		case Throttled:
			b.WriteByte('W')
		case TakeOver:
			b.WriteByte('O')
		case Dismiss:
			b.WriteByte('X')
		case ReloadFailed:
			b.WriteByte('L')
		case BeginDrain:
			b.WriteByte('D')
		case CloseStdin:
			b.WriteByte('I')
		case Terminate:
			b.WriteByte('T')
		case Kill:
			b.WriteByte('K')
		case Finish:
			b.WriteByte('F')
		}
	}
	return b.String()
}

func rulesOf78() Options {
	var o Options
	o.Exits.FailOn = []int{78}
	return o
}

// parseTable puts the tables of every cell together.
func parseTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	cells := map[string]map[string]string{}
	for _, one := range []string{table, besideTable, spareTable, sleepTable} {
		var head []string
		for line := range strings.Lines(one) {
			var fields []string
			for f := range strings.SplitSeq(strings.Trim(line, "|\n "), "|") {
				fields = append(fields, strings.TrimSpace(f))
			}
			switch {
			case len(fields) == 1:
			case fields[0] == "row":
				head = fields
			default:
				row := cells[fields[0]]
				if row == nil {
					row = map[string]string{}
					cells[fields[0]] = row
				}
				for i, f := range fields[1:] {
					row[head[i+1]] = f
				}
			}
		}
	}
	if len(cells) != len(allRows()) {
		t.Fatalf("the tables have %d rows", len(cells))
	}
	for name, row := range cells {
		if len(row) != len(columns) {
			t.Fatalf("row %s has %d columns", name, len(row))
		}
	}
	return cells
}
