package backend

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// history is the past of the processes and the running restart, for errors, status and events.
type history struct {
	*core

	lastOut           lastExit
	lastReloadFailure reloadFailure // of the last planned restart that came to nothing
	eraMismatch       mcp.Era       // the only era the server speaks, if the client does not and nothing is translated
	startup           time.Duration // of the last process that could serve
	readyAt           time.Time     // wall clock of the last time a process became the serving one
	begun             time.Time     // when the running restart was initiated; zero if none runs
	cause             string        // of the running restart
}

// lastExit is how the last process ended.
type lastExit struct {
	code   int // -1: it could not be started, or has not ended
	shell  int // the exit status of a shell, 126 or 127; 0: another try may succeed
	signal string
	at     time.Time
	why    string // in words, after "the server"
	ended  string // why outlive ended it, if it had failed; "": it ended by itself
	stderr []string

	kind endKind
}

// endKind is what has ended.
type endKind uint8

const (
	processEnded    endKind = iota
	neverStarted            // the process could not be started, and why says so
	connectionEnded         // a connection to a remote server has ended: code is -1, why is the reason
	neverEnded              // the process was killed and has not ended: code is -1, and why says so
)

// describeExit says how the last process ended: "exit status 3", "exit status 139 (segmentation fault)".
func (h *history) describeExit() string {
	o := h.lastOut
	if o.ended != "" {
		return o.ended
	}
	if o.signal != "" {
		return fmt.Sprintf("exit status %d (%s)", o.code, o.signal)
	}
	if o.why != "" && o.kind != processEnded {
		return o.why
	}
	return "exit status " + strconv.Itoa(o.code)
}

// stderrText is the end of the last process's stderr for an error message.
func (h *history) stderrText() string {
	if len(h.lastOut.stderr) == 0 {
		return ""
	}
	text := "\nlast stderr lines:\n" + strings.Join(h.lastOut.stderr, "\n")
	if dir := launcher.BrokenCache(h.lastOut.stderr); dir != "" {
		text += "\n" + launcher.CacheHint(dir)
	}
	return text
}

// decided reports what follows the end of a process. Other transitions are not reported.
func (h *history) decided(r supervise.Report) {
	if r.Cause != supervise.NoCause { // a start has none of its own
		h.cause = r.Cause.String()
	}
	code := h.lastOut.code
	if h.lastOut.shell != 0 {
		code = h.lastOut.shell
	}
	r.Tell(supervise.End{Text: h.describeEnd(), Code: code, Connection: h.lastOut.kind == connectionEnded}, h.emit)
}

// describeEnd describes the end of the last process in a sentence.
func (h *history) describeEnd() string {
	if h.lastOut.kind == connectionEnded {
		return "Connection lost: " + h.lastOut.why
	}
	if h.lastOut.kind == neverStarted {
		return "Server crashed (it could not be started)" // why was told just before
	}
	return "Server crashed (" + h.describeExit() + ")"
}

// beginRestart notes when a process that is to be replaced was asked to end.
func (h *history) beginRestart(r supervise.Report) {
	if h.begun.IsZero() && r.Cause != supervise.Shutdown && r.Cause != supervise.Idle {
		h.begun = h.now
	}
	if r.Cause == supervise.StartFail {
		what := "Server did not start: "
		if h.opts.Remote {
			what = "Server did not take the handshake: "
		}
		h.emit(event.StartTimeout, slog.LevelError, what+r.Reason,
			slog.String(event.KeyReason, r.Reason))
	}
}

func (h *history) tellReady(p *process) {
	text := fmt.Sprintf("Server ready (startup: %dms)", p.startup.Milliseconds())
	if h.reconnecting() {
		text = "Connected again after " + h.now.Sub(h.begun).Round(time.Millisecond).String()
	}
	h.emitOf(p, event.ServerReady, slog.LevelInfo, text, slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
}

// reconnecting reports whether what runs is no restart: a connection to a remote server was lost.
func (h *history) reconnecting() bool {
	if h.begun.IsZero() || h.lastOut.kind != connectionEnded {
		return false
	}
	return h.cause == supervise.Crash.String() || h.cause == supervise.StartFail.String() || h.cause == supervise.Unhealthy.String()
}

// completed tells that the running restart, if one runs, has come to its end.
func (h *history) completed() {
	if h.begun.IsZero() || h.reconnecting() {
		h.begun = time.Time{}
		return
	}
	took := h.now.Sub(h.begun)
	h.begun = time.Time{}
	h.emit(event.RestartCompleted, slog.LevelInfo, fmt.Sprintf("Restart completed in %dms", took.Milliseconds()),
		slog.Int64(event.KeyRestartMS, took.Milliseconds()), slog.String(event.KeyCause, h.cause))
}

func (h *history) remembered(method string) {
	h.emit(event.AnsweredFromMemory, slog.LevelInfo, method+" answered from memory: the server is not up yet",
		slog.String(event.KeyMethod, method))
}

// reloadFailure is a planned restart that failed.
type reloadFailure struct {
	at     time.Time
	gen    int // processes after this one are newer than what came to nothing
	why    string
	stderr []string
}

// nowServes forgets a planned restart that came to nothing, once a newer process serves.
func (h *history) nowServes(p *process) {
	if p.gen > h.lastReloadFailure.gen {
		h.lastReloadFailure = reloadFailure{}
	}
}

// exclusiveWords occur in the errors of servers that cannot run twice.
var exclusiveWords = []string{"EADDRINUSE", "ddress already in use", "lock", "already running", "in use"}

// hint is advice for a failure that looks like a conflict of the two processes.
func (f reloadFailure) hint() string {
	for _, line := range f.stderr {
		for _, word := range exclusiveWords {
			if strings.Contains(line, word) {
				return "the new process seems to need something the old one holds: try --reload replace"
			}
		}
	}
	return ""
}

func (f reloadFailure) text() string {
	text := f.why
	if len(f.stderr) > 0 {
		text += "\nlast stderr lines:\n" + strings.Join(f.stderr, "\n")
	}
	if h := f.hint(); h != "" {
		text += "\n" + h
	}
	return text
}
