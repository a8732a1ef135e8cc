package backend

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"
)

// tenMinutes is the default of --call-patience.
const tenMinutes = 10 * time.Minute

// TestProgressStaysBetweenTheServersOwn: whatever scale a server counts on, what outlive reports for ten minutes behind one of
// its values is above that, goes upwards, and stays below the next.
func TestProgressStaysBetweenTheServersOwn(t *testing.T) {
	for _, server := range []struct{ last, next string }{
		{"", "0"},
		{"", "1e-300"},
		{"0", "1"},
		{"0", "0.000001"},
		{"0.5", "0.50000001"},
		{"99.9", "100"},
		{"41", "42.0"},
		{"1e9", "1000000001"},
		{"123456789012", "123456789013"},
		{"9e99", "9.1e99"},
		{"-3", "-2"},
	} {
		c := &call{progress: []byte(server.last)}
		last := []byte(server.last)
		for left := tenMinutes - quietFor; left > 0; left -= quietFor {
			value := c.nextProgress(left)
			if !json.Valid(value) {
				t.Fatalf("after %q: %q is no JSON", server.last, value)
			}
			if len(last) > 0 && !greater(value, last) {
				t.Errorf("after %q: %s is not above %s", server.last, value, last)
			}
			last = append(last[:0], value...)
		}
		if !greater([]byte(server.next), last) {
			t.Errorf("after %q: %s is not below the server's %s", server.last, last, server.next)
		}
	}
}

func TestProgressThatCannotBeCountedOnIsLeftAlone(t *testing.T) {
	for _, last := range []string{`"half"`, `{}`, `1e400`, strconv.FormatFloat(1.7976931348623157e308, 'g', -1, 64)} {
		c := &call{progress: []byte(last)}
		if value := c.nextProgress(time.Minute); value != nil {
			t.Errorf("after %s: %s", last, value)
		}
	}
}
