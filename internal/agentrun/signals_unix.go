//go:build unix

package agentrun

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// passed are the signals that are meant for the agent when they come to us.
var passed = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// typed are those that a terminal sends to all of its foreground group at once.
var typed = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP}

// hear takes our signals. Those that we were started to ignore, as by nohup, go on being ignored. SIGPIPE is heard so that it
// does not end us: the write's error tells the same.
func hear() chan os.Signal {
	heard := make(chan os.Signal, 16)
	for _, sig := range slices.Concat(passed, []os.Signal{unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGPIPE}) {
		if !signal.Ignored(sig) {
			signal.Notify(heard, sig)
		}
	}
	return heard
}

// signal deals with a signal that has come to us.
func (w *wrapper) signal(sig os.Signal) {
	if !w.agent.group && slices.Contains(typed, sig) {
		if sig == unix.SIGTSTP {
			w.suspend()
		}
		return // the agent has had it from the terminal
	}
	switch sig {
	case unix.SIGPIPE:
	case unix.SIGWINCH:
		w.streams.terminal.resize()
	case unix.SIGCONT: // somebody may have stopped us in a way that cannot be heard, and used the terminal meanwhile
		w.streams.terminal.raw()
		w.streams.terminal.resize()
		w.agent.signal(unix.SIGCONT)
	case unix.SIGTSTP:
		w.agent.signal(unix.SIGSTOP) // SIGTSTP would be lost on it: in its terminal there is no shell that could continue it
		w.suspend()
	default:
		w.agent.signal(sig.(syscall.Signal))
	}
}

// agentStopped deals with an agent that was stopped. At a terminal we stop as well, so that the shell has it back; without
// one, whoever has stopped the agent wanted just that.
func (w *wrapper) agentStopped() {
	if w.streams.terminal != nil {
		w.suspend()
	}
}

// continueWait is how long the continuing that follows a stop may take to be heard.
const continueWait = 200 * time.Millisecond

// suspend stops our process group as a shell expects of a job, and returns after it was continued; the agent is continued
// with it. Where there is no shell that could do that the system leaves us running, and the agent stays as it is.
func (w *wrapper) suspend() {
	w.streams.terminal.restore()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	signal.Reset(unix.SIGTSTP)
	_ = unix.Kill(0, unix.SIGTSTP)
	timer := time.NewTimer(continueWait)
	defer timer.Stop()
	select {
	case <-continued: // w.heard has it, too
	case <-timer.C:
	}
	signal.Notify(w.heard, unix.SIGTSTP)
	w.streams.terminal.raw()
	w.streams.terminal.resize()
}
