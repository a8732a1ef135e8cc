package logline

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// The voices on stderr: the watchdog, the proxy, and the gateway.
const (
	supervisor = "SUPERVISOR"
	proxy      = "PROXY"
	gateway    = "GATEWAY"
)

// line is one log line without its time.
type line struct {
	tag, text string
}

// narrator turns events into lines. It remembers just enough to keep the watchdog's order and numbers whatever order a restart's
// events come in: a restart by marker or tool is initiated before the old process exits, one by exit code after it.
type narrator struct {
	opts      Options
	cast      cast
	starts    int  // ServerStarting events so far
	restarts  int  // RestartCount of the last ServerStarting
	requested bool // "Restart requested" is still to be said
	noisy     bool // it was said that the server writes to stdout what is not a message
}

// tell returns the lines for e, in order; the texts are those of WD-15.
func (n *narrator) tell(e event.Event) []line {
	if n.opts.Gateway {
		return []line{{gateway, marked(e)}}
	}
	if n.opts.Elsewhere {
		return []line{{proxy, marked(e)}}
	}
	switch e.Type {
	case event.ProxyStarted:
		return n.started()
	case event.ServerStarting:
		return n.starting(e)
	case event.ServerSpawned:
		return n.spawned(e)
	case event.ServerExited:
		return n.exited(e)
	case event.RestartInitiated:
		return n.initiated(e)
	case event.RestartThrottled:
		return say("WARNING: Restart throttle triggered (max 1/sec)")
	case event.ServerCrashed:
		return n.crashed(e)
	case event.RestartDelayed:
		return delayed(e)
	case event.CleanShutdown:
		return say("Clean shutdown requested, supervisor exiting")
	case event.Interrupted:
		return interrupted(e)
	case event.FatalError:
		return say("FATAL ERROR: %s", textOf(e, event.KeyError))
	case event.ProxyStopped:
		return say("=== Watchdog Supervisor Exiting (code: %s) ===", number(e, event.KeyExitCode))
	case event.ReloadFailed:
		return reloadFailed(e)
	case event.ServerReady, event.RestartCompleted:
		return n.serves(e)
	case event.InitializeCaptured, event.InitializeReplayed, event.AnsweredFromMemory, event.ClientClosed:
		if n.brief() {
			return nil
		}
	case event.StdoutNoise:
		return n.noise(e)
	case event.SpawnFailed, event.StartTimeout, event.BreakerOpened, event.BreakerClosed, event.ServerSlept, event.ServerLogLost:
		return []line{{supervisor, marked(e)}}
	}
	return []line{{proxy, marked(e)}}
}

// crashed tells of a crash; that a restart follows is said only where one does.
func (n *narrator) crashed(e event.Event) []line {
	if v, ok := e.Attr(event.KeyRestarting); ok && v.Kind() == slog.KindBool && !v.Bool() {
		return say("ERROR: Server crashed (exit code %s)", number(e, event.KeyExitCode))
	}
	return say("ERROR: Server crashed (exit code %s), restarting (restart #%d)", number(e, event.KeyExitCode), n.next(e))
}

func say(format string, args ...any) []line {
	return []line{{supervisor, fmt.Sprintf(format, args...)}}
}

func (n *narrator) started() []line {
	lines := say("=== Watchdog Supervisor Starting ===")
	switch {
	case isPython(n.opts.Executable):
		lines = append(lines, line{supervisor, "Python: " + n.opts.Executable})
	case len(n.opts.Command) > 0:
		lines = append(lines, line{supervisor, "Command: " + secret.Line(n.opts.Command)})
	}
	lines = append(lines,
		line{supervisor, "PID: " + strconv.Itoa(n.opts.PID)},
		line{supervisor, "CWD: " + n.opts.Dir})
	if !n.opts.Inherit {
		lines = append(lines, line{proxy, fmt.Sprintf("MCP Proxy starting (PID=%d)", n.opts.PID)})
	}
	return lines
}

// isPython tells a Python interpreter by its file name, of any system: python, python3.12, pythonw.exe, pypy3.
func isPython(path string) bool {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	name = strings.TrimSuffix(name, ".exe")
	switch strings.TrimRight(name, "0123456789.") {
	case "python", "pythonw", "pypy":
		return true
	}
	return false
}

// starting tells of a start. One beside the server that runs is the watchdog's next server if a restart was requested, else a
// spare, which the watchdog does not know.
func (n *narrator) starting(e event.Event) []line {
	if n.cast.starts(n.requested) == spare {
		return []line{{proxy, "Starting spare server"}}
	}
	var lines []line
	if n.requested {
		n.requested = false
		lines = say("Restart requested, spawning new server (restart #%d)", e.RestartCount)
	}
	n.starts++
	n.restarts = e.RestartCount
	return append(lines, say("Starting MCP server (restart #%d)", e.RestartCount)...)
}

func (n *narrator) spawned(e event.Event) []line {
	if n.cast.spawned(e.Generation) == spare {
		return []line{{proxy, fmt.Sprintf("Spare server running (PID: %d)", e.ServerPID)}}
	}
	return say("MCP server running (PID: %d)", e.ServerPID)
}

// exited tells of an exit; readers of the watchdog's line assume that the server has gone.
func (n *narrator) exited(e event.Event) []line {
	code := number(e, event.KeyExitCode)
	switch n.cast.exited(e.Generation) {
	case old:
		return []line{{proxy, fmt.Sprintf("Old server exited (PID: %d, code: %s)", e.ServerPID, code)}}
	case next:
		return []line{{proxy, fmt.Sprintf("New server exited (PID: %d, code: %s)", e.ServerPID, code)}}
	case spare:
		return []line{{proxy, fmt.Sprintf("Spare server exited (PID: %d, code: %s)", e.ServerPID, code)}}
	}
	return say("MCP server exited (code: %s)", code)
}

// serves tells which process serves now. If a restart was requested and nothing was started for it, a spare took over.
func (n *narrator) serves(e event.Event) []line {
	var lines []line
	if n.requested && n.cast.running() && e.Generation != n.cast.leads {
		n.requested = false
		lines = say("Restart requested, spawning new server (restart #%d)", n.next(e))
	}
	n.cast.serves(e.Generation)
	return append(lines, line{proxy, marked(e)})
}

// brief reports whether what says nothing new to people is left out: the watchdog's log has none of it, and clients show every
// line. Programs that read JSON get all.
func (n *narrator) brief() bool { return n.opts.Format != JSON && n.opts.Level > slog.LevelDebug }

// noise tells of lines on stdout that are not messages, once: each of them is shown as it came.
func (n *narrator) noise(e event.Event) []line {
	if !n.brief() {
		return []line{{proxy, marked(e)}}
	}
	if n.noisy {
		return nil
	}
	n.noisy = true
	e.Message = "Server stdout (no MCP message): such lines are shown behind [stdout]"
	return []line{{proxy, marked(e)}}
}

// reloadFailed tells of it in one line: the last words of the new server have gone to stderr already, as they came.
func reloadFailed(e event.Event) []line {
	e.Message, _, _ = strings.Cut(e.Message, "\n")
	lines := []line{{proxy, marked(e)}}
	if hint, ok := e.Attr(event.KeyHint); ok {
		lines = append(lines, line{proxy, "Hint: " + hint.String()})
	}
	return lines
}

// initiated says that a restart was requested, once the old process is gone; a throttle's warning comes before it.
func (n *narrator) initiated(e event.Event) []line {
	switch causeOf(e) {
	case "requested":
	case "crash", "start_failed", "misconfigured", "unhealthy", "memory":
		return nil // "Server crashed, restarting" has said it, and WD-15 has nothing between that and the delay
	default:
		return []line{{proxy, marked(e)}}
	}
	if n.cast.running() {
		n.requested = true
		return nil
	}
	n.requested = false
	return say("Restart requested, spawning new server (restart #%d)", n.next(e))
}

// next is the number of the restart that follows, whether or not the event counts it already.
func (n *narrator) next(e event.Event) int {
	if n.starts == 0 {
		return e.RestartCount
	}
	return max(e.RestartCount, n.restarts+1)
}

// causeOf is the event's supervise.Cause; "" when it carries none.
func causeOf(e event.Event) string {
	v, ok := e.Attr(event.KeyCause)
	if !ok {
		return ""
	}
	return v.String()
}

// delayed says how long the server waits after a crash; a wait of nothing is not a wait, and the pause of a requested
// restart is not told (WD-15).
func delayed(e event.Event) []line {
	if causeOf(e) == "requested" {
		return nil
	}
	v, _ := e.Attr(event.KeyDelayMS)
	ms := integer(v)
	if ms <= 0 {
		return nil
	}
	return say("Crash recovery delay: %ss", pythonFloat(float64(ms)/1000))
}

// pythonFloat is str(float) of Python for the sizes a delay has.
func pythonFloat(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func interrupted(e event.Event) []line {
	sig, _ := e.Attr(event.KeySignal)
	switch s := strings.ToLower(sig.String()); s {
	case "interrupt", "sigint", "int", "ctrl-c":
		return say("Keyboard interrupt received, shutting down")
	case "", "<nil>":
		return say("Signal received, shutting down")
	default:
		return say("Signal received (%s), shutting down", s)
	}
}

// marked is the event's message, with the watchdog's word in front when it is a warning or an error.
func marked(e event.Event) string {
	text := e.Message
	if text == "" {
		text = strings.ReplaceAll(string(e.Type), "_", " ")
		for _, a := range e.Attrs {
			text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
	}
	switch {
	case e.Level >= slog.LevelError:
		return "ERROR: " + text
	case e.Level >= slog.LevelWarn:
		return "WARNING: " + text
	}
	return text
}

// textOf is the attribute, or else the message.
func textOf(e event.Event, key string) string {
	if v, ok := e.Attr(key); ok && v.String() != "" {
		return v.String()
	}
	return e.Message
}

// number is the attribute as digits; "?" when the event does not carry it.
func number(e event.Event, key string) string {
	v, ok := e.Attr(key)
	if !ok {
		return "?"
	}
	return strconv.FormatInt(integer(v), 10)
}

func integer(v slog.Value) int64 {
	switch v.Kind() {
	case slog.KindInt64:
		return v.Int64()
	case slog.KindUint64:
		return int64(v.Uint64())
	case slog.KindDuration:
		return v.Duration().Milliseconds()
	}
	return 0
}
