package logline

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// The tags on stderr: the watchdog, the proxy, and the gateway.
const (
	supervisor = "SUPERVISOR"
	proxy      = "PROXY"
	gateway    = "GATEWAY"
)

// line is one log line without its time.
type line struct {
	tag, text string
}

// formatter turns events into lines. It remembers what is necessary to keep the watchdog's order and numbers in every
// order of a restart's events: a restart by marker or tool is initiated before the old process exits, one by exit
// code after it.
type formatter struct {
	opts         Options
	processTable processTable
	starts       int  // ServerStarting events so far
	restarts     int  // RestartCount of the last ServerStarting
	requested    bool // the line "Restart requested" was not written yet
	noisy        bool // the line about invalid messages on stdout was written
}

// tell returns the lines for e, in order; the texts are those of WD-15.
func (n *formatter) tell(e event.Event) []line {
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

// crashed returns the lines about a crash; they mention a restart only if one follows.
func (n *formatter) crashed(e event.Event) []line {
	if v, ok := e.Attr(event.KeyRestarting); ok && v.Kind() == slog.KindBool && !v.Bool() {
		return say("ERROR: Server crashed (exit code %s)", number(e, event.KeyExitCode))
	}
	return say("ERROR: Server crashed (exit code %s), restarting (restart #%d)", number(e, event.KeyExitCode), n.next(e))
}

func say(format string, args ...any) []line {
	return []line{{supervisor, fmt.Sprintf(format, args...)}}
}

func (n *formatter) started() []line {
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

// isPython recognises a Python interpreter by its file name, on any system: python, python3.12, pythonw.exe, pypy3.
func isPython(path string) bool {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	name = strings.TrimSuffix(name, ".exe")
	switch strings.TrimRight(name, "0123456789.") {
	case "python", "pythonw", "pypy":
		return true
	}
	return false
}

// starting returns the lines about a start. A start while the server runs is the watchdog's next server if a restart
// was requested, otherwise a spare, which the watchdog does not have.
func (n *formatter) starting(e event.Event) []line {
	if n.processTable.starts(n.requested) == spare {
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

func (n *formatter) spawned(e event.Event) []line {
	if n.processTable.spawned(e.Generation) == spare {
		return []line{{proxy, fmt.Sprintf("Spare server running (PID: %d)", e.ServerPID)}}
	}
	return say("MCP server running (PID: %d)", e.ServerPID)
}

// exited returns the lines about an exit; readers of the watchdog's line assume that the server has ended.
func (n *formatter) exited(e event.Event) []line {
	code := number(e, event.KeyExitCode)
	if which := map[part]string{old: "Old", next: "New", spare: "Spare"}[n.processTable.exited(e.Generation)]; which != "" {
		return []line{{proxy, fmt.Sprintf("%s server exited (PID: %d, code: %s)", which, e.ServerPID, code)}}
	}
	return say("MCP server exited (code: %s)", code)
}

// serves returns the lines about which process serves now. If a restart was requested and nothing was started for it,
// a spare took over.
func (n *formatter) serves(e event.Event) []line {
	var lines []line
	if n.requested && n.processTable.running() && e.Generation != n.processTable.leads {
		n.requested = false
		lines = say("Restart requested, spawning new server (restart #%d)", n.next(e))
	}
	n.processTable.serves(e.Generation)
	return append(lines, line{proxy, marked(e)})
}

// brief reports whether lines that are not useful to people are omitted: the watchdog's log has none of them, and
// clients show every line. JSON, which programs read, has all.
func (n *formatter) brief() bool { return n.opts.Format != JSON && n.opts.Level > slog.LevelDebug }

// noise reports, once, lines on stdout that are not messages; the lines themselves are passed on.
func (n *formatter) noise(e event.Event) []line {
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

// reloadFailed returns one line: the new server's last output has been written to stderr already.
func reloadFailed(e event.Event) []line {
	e.Message, _, _ = strings.Cut(e.Message, "\n")
	lines := []line{{proxy, marked(e)}}
	if hint, ok := e.Attr(event.KeyHint); ok {
		lines = append(lines, line{proxy, "Hint: " + hint.String()})
	}
	return lines
}

// initiated reports that a restart was requested, once the old process has ended; a throttle's warning precedes it.
func (n *formatter) initiated(e event.Event) []line {
	switch causeOf(e) {
	case "requested":
	case "crash", "start_failed", "misconfigured", "unhealthy", "memory":
		return nil // "Server crashed, restarting" was written, and WD-15 has no line between that and the delay
	default:
		return []line{{proxy, marked(e)}}
	}
	if n.processTable.running() {
		n.requested = true
		return nil
	}
	n.requested = false
	return say("Restart requested, spawning new server (restart #%d)", n.next(e))
}

// next is the number of the following restart, whether or not the event already counts it.
func (n *formatter) next(e event.Event) int {
	if n.starts == 0 {
		return e.RestartCount
	}
	return max(e.RestartCount, n.restarts+1)
}

// causeOf is the event's supervise.Cause; "" if it has none.
func causeOf(e event.Event) string {
	v, ok := e.Attr(event.KeyCause)
	if !ok {
		return ""
	}
	return v.String()
}

// delayed reports how long the server waits after a crash. A delay of zero is omitted, as is the pause of a requested
// restart (WD-15).
func delayed(e event.Event) []line {
	if causeOf(e) == "requested" {
		return nil
	}
	ms, err := strconv.ParseFloat(number(e, event.KeyDelayMS), 64)
	if err != nil || ms <= 0 {
		return nil
	}
	return say("Crash recovery delay: %ss", pythonFloat(ms/1000))
}

// pythonFloat is Python's str(float), for values in the range of delays.
func pythonFloat(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func interrupted(e event.Event) []line {
	sig := textOf(e, event.KeySignal)
	if sig == "interrupt" { // as os.Interrupt is called on every system
		return say("Keyboard interrupt received, shutting down")
	}
	return say("Signal received (%s), shutting down", sig)
}

// marked is the event's message, prefixed with the watchdog's word if it is a warning or an error.
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

// textOf is the attribute, or the message if there is none.
func textOf(e event.Event, key string) string {
	if v, ok := e.Attr(key); ok && v.String() != "" {
		return v.String()
	}
	return e.Message
}

// number is the attribute as digits; "?" if the event does not have it.
func number(e event.Event, key string) string {
	v, ok := e.Attr(key)
	if !ok {
		return "?"
	}
	return v.String()
}
