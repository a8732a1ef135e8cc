package seen

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// What a run says again, or said before, is not newer; another run takes its place.
func TestOrder(t *testing.T) {
	var o Order
	for _, step := range []struct {
		run    string
		number uint64
		newer  bool
	}{{"a", 1, true}, {"a", 1, false}, {"a", 3, true}, {"a", 2, false}, {"b", 1, true}, {"b", 1, false}, {"b", 2, true}} {
		if o.Newer(step.run, step.number) != step.newer {
			t.Errorf("%s %d is newer: %t", step.run, step.number, !step.newer)
		}
	}
}

// A position is read as it was written, also one of a version before, with what follows it.
func TestPosition(t *testing.T) {
	for text, want := range map[string]struct{ position, rest string }{
		"x:7": {"x:7", ""}, "x:7:silent": {"x:7", "silent"}, "x:7:not known": {"x:7", "not known"}, "none:0": {"none:1", ""}, "": {":0", ""}, "x": {":0", ""}, "x:y:z": {":0", ""},
	} {
		if r, rest := ReaderAt(text); r.String() != want.position || rest != want.rest {
			t.Errorf("%q is %s, %q", text, r, rest)
		}
	}
}

// Of too many events the last ones are kept, and a copy of the log stays as it was.
func TestAdd(t *testing.T) {
	l := NewLog(1, "x")
	for n := range 5 {
		l.Add([]byte(strconv.Itoa(n)), 3, 100)
	}
	was := l
	l.Add([]byte("long"), 3, 5)
	if was.First != 3 || len(was.Lines) != 3 || l.First != 5 || len(l.Lines) != 2 || string(l.Lines[1]) != "long" || string(was.Lines[2]) != "4" {
		t.Errorf("%+v, and then %+v", was, l)
	}
}

// model is a machine that has events, a registry, and somebody who reads.
type model struct {
	whole bool // the registry loses nothing

	machine Log
	runs    int
	looked  bool   // the run has looked how far the one before has told
	events  uint64 // so many have happened; the text of each is its number
	lost    uint64 // so many of them ended with their run, which had not told of them
	covered uint64 // so many of the others are told to the registry, or were too many to be kept

	registry Log
	before   []Log // what it had of the run that it has now

	reader  Reader
	from    uint64 // so many were covered when the reader began
	told    []uint64
	missing uint64
}

// run starts the machine's program.
func (m *model) run() {
	m.lost = m.events - m.covered
	m.runs++
	m.machine, m.looked = NewLog(1, strconv.Itoa(m.runs)), false
}

func (m *model) step(chance *rand.Rand) {
	switch what := chance.IntN(12); {
	case what < 3:
		for range 1 + chance.IntN(5) {
			m.events++
			m.machine.Add([]byte(strconv.FormatUint(m.events, 10)), 3, 1000)
		}
	case what < 6:
		m.write()
	case what == 6:
		m.run()
	case what == 7:
		m.reader, _ = ReaderAt(m.reader.String()) // who reads is started anew
	case what == 8 && !m.whole && chance.IntN(4) == 0:
		m.registry, m.before = Log{}, nil
	case what == 9 && !m.whole && len(m.before) > 0:
		m.registry = m.before[chance.IntN(len(m.before))]
	default:
		m.read()
	}
}

func (m *model) write() {
	if len(m.machine.Lines) == 0 {
		return
	}
	if !m.looked {
		m.machine.GoOn(m.registry)
		m.looked = true
	}
	if m.registry.Run != m.machine.Run {
		m.before = nil
	}
	m.registry, m.covered = m.machine, m.events-m.lost
	m.before = append(m.before, m.registry)
}

func (m *model) read() {
	if m.reader.run == "" {
		m.reader.Start(m.registry)
		m.from = m.covered
		return
	}
	fresh, missing := m.reader.Take(m.registry)
	m.missing += missing
	for _, line := range fresh {
		n, _ := strconv.ParseUint(string(line), 10, 64) // it is one
		m.told = append(m.told, n)
	}
}

// fault is what is wrong with what the reader was told; "": nothing.
func (m *model) fault() string {
	m.read() // up to the newest
	for n := 1; n < len(m.told); n++ {
		if m.told[n] <= m.told[n-1] {
			return "an event is told twice, or after a later one"
		}
	}
	if told := uint64(len(m.told)) + m.missing; m.whole && told != m.covered-m.from {
		return "events are neither told nor said to be missing, or others are"
	}
	return ""
}

// Each event is told once, and in its order, whoever is started anew, and whatever the registry loses, or tells again of one run. Where it loses nothing those
// that are not told are counted.
func TestEventsOnce(t *testing.T) {
	histories := 10_000
	if tier.Name() != "door" {
		histories = 100_000
	}
	chance := tier.Rand(t)
	told, missing := 0, uint64(0)
	for n := range histories {
		m := &model{whole: n%2 == 0}
		m.run()
		for range 60 {
			m.step(chance)
		}
		if fault := m.fault(); fault != "" {
			t.Fatalf("%s: %+v", fault, m)
		}
		told, missing = told+len(m.told), missing+m.missing
	}
	if t.Logf("%d events told, %d missing", told, missing); told < histories || missing < uint64(histories) {
		t.Error("hardly anything is told, or missing")
	}
}

// A log is read as it was written.
func TestLogText(t *testing.T) {
	l := NewLog(1, "x")
	l.Add([]byte(`{"a":1}`), 3, 100)
	text, err := json.Marshal(l)
	if want := `{"v":1,"inc":"x","began":1,"first":1,"lines":[{"a":1}]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var got Log
	if err := json.Unmarshal(text, &got); err != nil || got.Run != l.Run || !slices.EqualFunc(got.Lines, l.Lines, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("%+v, %v", got, err)
	}
}
