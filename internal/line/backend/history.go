package backend

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// history is what has become of the processes so far, and of the restart that runs: what errors, the status and the events
// of a restart say of it.
type history struct {
	*core

	lastOut      lastExit
	misfortune   reloadFailure // of the last planned restart that came to nothing
	estranged    mcp.Era       // all that the server speaks now, where its client does not and nothing is translated
	introduction string        // DiscoverResult of the last modern process that served
	startup      time.Duration // of the last process that could serve
	readyAt      time.Time     // wall clock of the last time a process became the serving one
	begun        time.Time     // when the running restart was initiated; zero if none runs
	cause        string        // of the running restart
}

// lastExit is how the last process ended.
type lastExit struct {
	code   int // -1: it could not be started
	shell  int // then what a shell would exit with, 126 or 127; 0: another try may succeed
	signal string
	at     time.Time
	why    string // in words, after "the server"
	ended  string // why outlive ended it, if it had failed; "" if it ended by itself
	stderr []string

	kind endKind
}

// endKind is what has ended.
type endKind uint8

const (
	processEnded    endKind = iota
	neverStarted            // the process could not be started, and why says so
	connectionEnded         // it was a connection to a server elsewhere: code is -1, and why says all there is to say
)

// describeExit says how the last process ended: "exit 3", "exit 139 (segmentation fault)".
func (h *history) describeExit() string {
	o := h.lastOut
	if o.ended != "" {
		return o.ended
	}
	if o.signal != "" {
		return fmt.Sprintf("last exit %d (%s)", o.code, o.signal)
	}
	if o.why != "" && o.kind != processEnded {
		return o.why
	}
	return "last exit " + strconv.Itoa(o.code)
}

// stderrText is the end of the last process's stderr, as part of an error message.
func (h *history) stderrText() string {
	if len(h.lastOut.stderr) == 0 {
		return ""
	}
	return "\nlast stderr lines:\n" + strings.Join(h.lastOut.stderr, "\n")
}

// decided tells what follows on a process that is gone; of any other transition there is nothing to tell.
func (h *history) decided(r supervise.Report) {
	if r.Cause != supervise.NoCause { // a start has none of its own
		h.cause = r.Cause.String()
	}
	code := h.lastOut.code
	if h.lastOut.shell != 0 {
		code = h.lastOut.shell
	}
	r.Tell(h.describeEnd(), code, h.emit)
}

// describeEnd says what has happened to the last process, as a sentence.
func (h *history) describeEnd() string {
	if h.lastOut.kind == connectionEnded {
		return "Server cannot be used: " + h.lastOut.why
	}
	return "Server crashed (" + h.describeExit() + ")"
}

// beginRestart notes when a process that is to be replaced was told to go.
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
	h.emitOf(p, event.ServerReady, slog.LevelInfo, fmt.Sprintf("Server ready (startup: %dms)", p.startup.Milliseconds()),
		slog.Int64(event.KeyStartupMS, p.startup.Milliseconds()))
}

// completed tells that the running restart, if one runs, has come to its end.
func (h *history) completed() {
	if h.begun.IsZero() {
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

// reloadFailure is a planned restart that came to nothing.
type reloadFailure struct {
	at     time.Time
	why    string
	stderr []string
}

// exclusiveWords are what servers say that cannot run twice.
var exclusiveWords = []string{"EADDRINUSE", "ddress already in use", "lock", "already running", "in use"}

// hint is advice for a failure that looks as if the two processes were in each other's way.
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
