package tracecontext

import (
	"encoding/binary"
	"testing"
)

const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// counting makes ids 1, 2, 3 …
func counting() func([]byte) {
	n := uint64(0)
	return func(b []byte) {
		n++
		binary.BigEndian.PutUint64(b[len(b)-8:], n)
	}
}

func TestOnlyATraceparentIsOne(t *testing.T) {
	for text, want := range map[string]bool{
		given: true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00":       true,
		"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later": true,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later": false,
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":       false,
		"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01":       false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01":       false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01":       false,
		"": false, "---": false, "00-1-2-3": false,
	} {
		if _, ok := Parse(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
	if c, _ := Parse(given); c.String() != given {
		t.Errorf("%s came back as %s", given, c)
	}
}

func TestATraceIsContinued(t *testing.T) {
	s := Source{Random: counting(), Share: 1}
	spans := s.Begin(given)
	if want := "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000002-01"; spans.Client.String() != want {
		t.Errorf("%s, want %s", spans.Client, want)
	}
	if binary.BigEndian.Uint64(spans.Server[:]) != 1 || binary.BigEndian.Uint64(spans.Parent[:]) != 0x00f067aa0ba902b7 || !spans.Known() {
		t.Errorf("%+v", spans)
	}
	if fresh := s.Begin("nonsense"); fresh.Parent != [8]byte{} || fresh.Client.Trace == spans.Client.Trace || fresh.Client.Flags != Sampled {
		t.Errorf("%+v", fresh)
	}
	if (&Spans{}).Known() {
		t.Error("there are spans of nothing")
	}
}

func TestWhichTracesAreRecorded(t *testing.T) {
	const not = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for _, c := range []struct {
		share  float64
		alone  bool
		parent string
		want   byte
	}{
		{1, false, "", 1}, {0, false, "", 0}, {0, false, given, 1}, {1, false, not, 0}, {1, true, not, 1}, {0, true, given, 0},
		{0.5, true, "00-4bf92f3577b34da67fffffffffffffff-00f067aa0ba902b7-01", 1}, {0.5, true, "00-4bf92f3577b34da6ffffffffffffffff-00f067aa0ba902b7-01", 0},
	} {
		s := Source{Random: counting(), Share: c.share, Alone: c.alone}
		if got := s.Begin(c.parent).Client.Flags; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
