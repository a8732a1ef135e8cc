package backend

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
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
			if len(last) > 0 && !jsonrpc.Greater(value, last) {
				t.Errorf("after %q: %s is not above %s", server.last, value, last)
			}
			last = append(last[:0], value...)
		}
		if !jsonrpc.Greater([]byte(server.next), last) {
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

// TestBusyServersCalls: a server that does one thing at a time answers no question meanwhile. That it works is seen by the processor
// time of its tree; without any its client is told for five minutes that the call goes on.
func TestBusyServersCalls(t *testing.T) {
	const known, unknown = true, false
	for name, c := range map[string]struct {
		known           bool
		resting, called float64       // cores in use
		until           time.Duration // progress comes
	}{
		"a build":                     {known, 0, 1, tenMinutes},
		"a test run on four cores":    {known, 0.001, 4, tenMinutes},
		"a little beyond its rest":    {known, 0.02, 0.08, tenMinutes},
		"blocked":                     {known, 0, 0, silentFor},
		"hung, with its timers":       {known, 0.06, 0.07, silentFor},
		"hung, and busy as ever":      {known, 0.5, 0.52, silentFor},
		"nothing is known of its use": {unknown, 0, 1, silentFor},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Options{NoTools: true, CallPatience: tenMinutes})
			w.vitals.Known = c.known
			w.b.Open(w.now)
			w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
			w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
			w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			w.takeServer()
			w.takeClient()
			runs := func(d time.Duration, cores float64, answers bool) (last time.Duration) {
				for passed := time.Second; passed <= d; passed += time.Second {
					w.vitals.CPU += time.Duration(cores * float64(time.Second))
					w.tick(time.Second)
					for _, line := range w.takeServer() {
						if id := jsonrpc.Find([]byte(line), "id").Of([]byte(line)); answers && id != nil {
							w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, id))
						}
					}
					for _, line := range w.takeClient() {
						if !strings.Contains(line, "notifications/progress") || passed-last > 20*time.Second {
							t.Fatalf("after %s, last after %s: %s", passed, last, line)
						}
						last = passed
					}
				}
				return last
			}
			runs(3*time.Minute, c.resting, true)
			w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","_meta":{"progressToken":"t"}}}`)
			w.takeServer()
			silent := func() bool { return w.b.Status(w.now).Unanswered[0].Silent }
			last := runs(silentFor, c.called, false)
			if c.until > silentFor {
				if silent() {
					t.Error("a server that works is shown as silent")
				}
				last = silentFor + runs(tenMinutes-silentFor+time.Minute, c.called, false)
			} else if runs(time.Minute, c.called, false) > 0 {
				t.Error("its client is told after five minutes that the call goes on")
			}
			if c.until-last > 20*time.Second || last > c.until {
				t.Errorf("its client was last told after %s, want %s", last, c.until)
			}
			if !silent() {
				t.Error("status does not say that it is silent")
			}
		})
	}
}
