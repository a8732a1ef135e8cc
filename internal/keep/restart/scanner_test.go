package restart

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func TestMarkerScanner(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   int
	}{
		"whole line":               {[]string{Marker + "\n"}, 1},
		"within a line":            {[]string{"INFO " + Marker + " bye\n"}, 1},
		"split in two":             {[]string{"__MCP_REST", "ART_REQUEST__"}, 1},
		"byte by byte":             {strings.Split("x"+Marker, ""), 1},
		"two":                      {[]string{Marker + "\n" + Marker}, 2},
		"two in a row":             {[]string{Marker + Marker}, 2},
		"underscores before":       {[]string{"_____" + Marker[2:]}, 1},
		"false start, split":       {[]string{"__MCP_R_", "_MCP_RESTART_REQUEST__"}, 1},
		"shared bytes count once":  {[]string{Marker + Marker[2:]}, 1},
		"almost":                   {[]string{"__MCP_RESTART_REQUEST_\n_"}, 0},
		"other case":               {[]string{strings.ToLower(Marker)}, 0},
		"across a process's lines": {[]string{"__MCP_", "\n", "RESTART_REQUEST__"}, 0},
		"two in a long piece":      {[]string{strings.Repeat("x", scanMost-5) + Marker + strings.Repeat("y", 2*scanMost) + Marker}, 2},
		"nothing":                  {[]string{"", "ready\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var s MarkerScanner
			got := 0
			for _, chunk := range c.chunks {
				got += s.Scan([]byte(chunk))
			}
			if got != c.want {
				t.Errorf("found %d, want %d", got, c.want)
			}
		})
	}
}

func TestMarkerScannerFindsWhatASearchOfTheWholeFinds(t *testing.T) {
	piece := rapid.SampledFrom([]string{Marker, "_", "__", "__MCP_", "RESTART", Marker[:10], Marker[10:], "x", "\n"})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(piece).Draw(rt, "text"), "")
		var s MarkerScanner
		got := 0
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			got += s.Scan(rest[:n])
			rest = rest[n:]
		}
		if want := strings.Count(text, Marker); got != want {
			rt.Fatalf("%q: found %d, want %d", text, got, want)
		}
	})
}

func TestMarkerScannerDoesNotAllocate(t *testing.T) {
	chunk := bytes.Repeat([]byte("INFO request handled in 3 ms, user_id=_x\n"), 100)
	var s MarkerScanner
	if n := testing.AllocsPerRun(100, func() { s.Scan(chunk) }); n != 0 {
		t.Errorf("%v allocations per chunk", n)
	}
	if n := cap(s.text); n > 2*scanMost {
		t.Errorf("it keeps %d bytes", n)
	}
}
