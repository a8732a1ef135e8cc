package logline

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// types are all types of events, as the source has them.
func types(t *testing.T) (all []event.Type) {
	t.Helper()
	source, err := os.ReadFile("../event/event.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\t|const )\w+ +Type = "(\w+)"`).FindAllSubmatch(source, -1) {
		all = append(all, event.Type(m[1]))
	}
	if len(all) == 0 {
		t.Fatal("no type of event is found")
	}
	return all
}

func cause(s string) slog.Attr { return slog.String(event.KeyCause, s) }
func code(n int) slog.Attr     { return slog.Int(event.KeyExitCode, n) }
func delay(ms int) slog.Attr   { return slog.Int(event.KeyDelayMS, ms) }

func ev(typ event.Type, restarts int, attrs ...slog.Attr) event.Event {
	return event.Event{Type: typ, RestartCount: restarts, ServerPID: 67890 + restarts, Attrs: attrs}
}

// said is what a formatter makes of events, "TAG text" a line.
func said(n *formatter, events ...event.Event) []string {
	var all []string
	for _, e := range events {
		for _, l := range n.tell(e) {
			all = append(all, l.tag+" "+l.text)
		}
	}
	return all
}

// The blocks of WD-15, each from the events that cause it.
func TestBlocksOfTheWatchdog(t *testing.T) {
	up := []event.Event{ev(event.ServerStarting, 0), ev(event.ServerSpawned, 0)}
	tests := []struct {
		name   string
		before []event.Event
		events []event.Event
		want   string
	}{
		{"spawn", nil, up, `
Starting MCP server (restart #0)
MCP server running (PID: 67890)`},
		{"clean exit", up, []event.Event{
			ev(event.ServerExited, 0, code(0)), ev(event.CleanShutdown, 0), ev(event.ProxyStopped, 0, code(0)),
		}, `
MCP server exited (code: 0)
Clean shutdown requested, supervisor exiting
=== Watchdog Supervisor Exiting (code: 0) ===`},
		{"restart by exit code", up, []event.Event{
			ev(event.ServerExited, 0, code(42)), ev(event.RestartInitiated, 1, cause("requested")),
			ev(event.RestartDelayed, 1, delay(500), cause("requested")), ev(event.ServerStarting, 1), ev(event.ServerSpawned, 1),
		}, `
MCP server exited (code: 42)
Restart requested, spawning new server (restart #1)
Starting MCP server (restart #1)
MCP server running (PID: 67891)`},
		{"the event may not count the restart yet", up, []event.Event{
			ev(event.ServerExited, 0, code(42)), ev(event.RestartInitiated, 0, cause("requested")), ev(event.ServerStarting, 1),
		}, `
MCP server exited (code: 42)
Restart requested, spawning new server (restart #1)
Starting MCP server (restart #1)`},
		{"restart initiated before the exit", up, []event.Event{
			ev(event.RestartInitiated, 0, cause("requested")), ev(event.ServerExited, 0, code(143)),
			ev(event.RestartThrottled, 0, delay(300)), ev(event.ServerStarting, 1), ev(event.ServerSpawned, 1),
		}, `
MCP server exited (code: 143)
WARNING: Restart throttle triggered (max 1/sec)
Restart requested, spawning new server (restart #1)
Starting MCP server (restart #1)
MCP server running (PID: 67891)`},
		{"restart with throttle", up, []event.Event{
			ev(event.ServerExited, 0, code(42)), ev(event.RestartThrottled, 1, delay(900)),
			ev(event.RestartInitiated, 1, cause("requested")), ev(event.ServerStarting, 1),
		}, `
MCP server exited (code: 42)
WARNING: Restart throttle triggered (max 1/sec)
Restart requested, spawning new server (restart #1)
Starting MCP server (restart #1)`},
		{"crash", up, []event.Event{
			ev(event.ServerExited, 0, code(1)), ev(event.ServerCrashed, 0, code(1)), ev(event.RestartInitiated, 0, cause("crash")),
			ev(event.RestartDelayed, 0, delay(1000), cause("crash")),
			ev(event.ServerStarting, 1), ev(event.ServerSpawned, 1),
		}, `
MCP server exited (code: 1)
ERROR: Server crashed (exit code 1), restarting (restart #1)
Crash recovery delay: 1.0s
Starting MCP server (restart #1)
MCP server running (PID: 67891)`},
		{"crash that restarts at once", up, []event.Event{
			ev(event.ServerExited, 0, code(139)), ev(event.ServerCrashed, 1, code(139)), ev(event.RestartDelayed, 1, delay(0)),
		}, `
MCP server exited (code: 139)
ERROR: Server crashed (exit code 139), restarting (restart #1)`},
		{"fatal error", nil, []event.Event{
			ev(event.FatalError, 0, slog.String(event.KeyError, "out of descriptors")), ev(event.ProxyStopped, 0, code(1)),
		}, `
FATAL ERROR: out of descriptors
=== Watchdog Supervisor Exiting (code: 1) ===`},
		{"keyboard interrupt", up, []event.Event{
			ev(event.Interrupted, 0, slog.String(event.KeySignal, "interrupt")), ev(event.ProxyStopped, 0, code(0)),
		}, `
Keyboard interrupt received, shutting down
=== Watchdog Supervisor Exiting (code: 0) ===`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &formatter{}
			said(n, tt.before...)
			var want []string
			for _, l := range strings.Split(strings.TrimPrefix(tt.want, "\n"), "\n") {
				want = append(want, "SUPERVISOR "+l)
			}
			if d := cmp.Diff(want, said(n, tt.events...)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestStartBlock(t *testing.T) {
	opts := Options{Command: []string{"node", "server.js"}, Executable: "/usr/bin/node", Dir: "/work space", PID: 12345}
	head := []string{"SUPERVISOR === Watchdog Supervisor Starting ==="}
	tail := []string{"SUPERVISOR PID: 12345", "SUPERVISOR CWD: /work space", "PROXY MCP Proxy starting (PID=12345)"}
	want := append(append(head, "SUPERVISOR Command: node server.js"), tail...)
	if d := cmp.Diff(want, said(&formatter{opts: opts}, ev(event.ProxyStarted, 0))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	opts.Executable, opts.Inherit = `D:\dev\.venv\Scripts\python.exe`, true
	want = append(append(head[:1:1], "SUPERVISOR Python: "+opts.Executable), tail[:2]...)
	if d := cmp.Diff(want, said(&formatter{opts: opts}, ev(event.ProxyStarted, 0))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestIsPython(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/bin/python3": true, "/v/bin/python": true, "/v/bin/python3.12": true, `C:\Python\PYTHON.EXE`: true,
		"pypy3": true, "/usr/bin/node": false, "/python/bin/node": false, "/usr/bin/python-config": false, "": false,
	} {
		if got := isPython(path); got != want {
			t.Errorf("isPython(%q) = %v", path, got)
		}
	}
}

func TestPythonFloat(t *testing.T) {
	for in, want := range map[float64]string{1: "1.0", 0.25: "0.25", 30: "30.0", 1.234: "1.234", 0.001: "0.001", 10: "10.0"} {
		if got := pythonFloat(in); got != want {
			t.Errorf("pythonFloat(%v) = %s, want %s", in, got, want)
		}
	}
}

// Every event is reported, by its own line of WD-15 or by its message.
func TestEveryEventIsTold(t *testing.T) {
	fixed := map[event.Type]string{
		event.ProxyStarted:     "SUPERVISOR === Watchdog Supervisor Starting ===",
		event.ProxyStopped:     "SUPERVISOR === Watchdog Supervisor Exiting (code: 7) ===",
		event.Interrupted:      "SUPERVISOR Signal received (terminated), shutting down",
		event.FatalError:       "SUPERVISOR FATAL ERROR: the message",
		event.ServerStarting:   "SUPERVISOR Starting MCP server (restart #3)",
		event.ServerSpawned:    "SUPERVISOR MCP server running (PID: 99)",
		event.ServerExited:     "SUPERVISOR MCP server exited (code: 7)",
		event.ServerCrashed:    "SUPERVISOR ERROR: Server crashed (exit code 7), restarting (restart #3)",
		event.CleanShutdown:    "SUPERVISOR Clean shutdown requested, supervisor exiting",
		event.RestartInitiated: "SUPERVISOR Restart requested, spawning new server (restart #3)",
		event.RestartThrottled: "SUPERVISOR WARNING: Restart throttle triggered (max 1/sec)",
		event.RestartDelayed:   "SUPERVISOR Crash recovery delay: 0.25s",
		event.SpawnFailed:      "SUPERVISOR the message",
		event.StartTimeout:     "SUPERVISOR the message",
		event.BreakerOpened:    "SUPERVISOR the message",
		event.BreakerClosed:    "SUPERVISOR the message",
		event.ServerSlept:      "SUPERVISOR the message",
		event.ServerLogLost:    "SUPERVISOR the message",
	}
	for _, typ := range types(t) {
		want, ok := fixed[typ]
		if !ok {
			want = "PROXY the message"
		}
		why := "requested"
		if typ == event.RestartDelayed {
			why = "crash"
		}
		e := event.Event{Type: typ, Message: "the message", ServerPID: 99, RestartCount: 3, Attrs: []slog.Attr{
			code(7), delay(250), cause(why), slog.String(event.KeySignal, "terminated")}}
		all := Options{Level: slog.LevelDebug}
		got := said(&formatter{opts: all}, e)
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q, want %q", typ, got, want)
		}
		e.Message, e.Attrs = "", nil // nothing said, nothing carried: still a line
		if got := fmt.Sprint(said(&formatter{opts: all}, e)); typ != event.RestartDelayed && len(got) < 10 {
			t.Errorf("%s without message: %q", typ, got)
		}
	}
	probe := ev(event.RestartInitiated, 1, cause("probe"))
	probe.Message = "Restart initiated"
	if got := said(&formatter{}, probe); got[0] != "PROXY Restart initiated" {
		t.Errorf("restart after a probe: %q", got)
	}
	warn := event.Event{Type: event.TextRepaired, Level: slog.LevelWarn, Message: "noise"}
	if got := said(&formatter{}, warn); got[0] != "PROXY WARNING: noise" {
		t.Errorf("warning: %q", got)
	}
}

// TestWhatIsLeftOut: what is not useful to people is reported at the level debug, and in JSON.
func TestWhatIsLeftOut(t *testing.T) {
	noise := event.Event{Type: event.StdoutNoise, Level: slog.LevelWarn, Message: "Server stdout (no MCP message): boo"}
	events := []event.Event{
		ev(event.InitializeCaptured, 0), ev(event.InitializeReplayed, 1), ev(event.AnsweredFromMemory, 0), ev(event.ClientClosed, 0), noise, noise,
	}
	want := []string{"PROXY WARNING: Server stdout (no MCP message): such lines are shown behind [stdout]"}
	if diff := cmp.Diff(want, said(&formatter{}, events...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, opts := range []Options{{Level: slog.LevelDebug}, {Format: JSON}, {Gateway: true}} {
		if got := said(&formatter{opts: opts}, events...); len(got) != len(events) {
			t.Errorf("%+v: %q", opts, got)
		}
	}
}
