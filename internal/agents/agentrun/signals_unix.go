//go:build unix

package agentrun

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/agents/process"
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
	if !w.agent.group && slices.Contains(typed, sig) && sig != unix.SIGTSTP {
		return // the agent has had it from the terminal
	}
	switch sig {
	case unix.SIGPIPE:
	case unix.SIGWINCH:
		w.streams.terminal.resize()
	case unix.SIGCONT: // somebody may have stopped us in a way that cannot be heard, and used the terminal meanwhile
		w.goOn()
	case unix.SIGTSTP:
		w.suspend()
	default:
		w.agent.signal(sig.(syscall.Signal))
	}
}

// agentStopped deals with an agent that was stopped. At a terminal we stop as well, so that the shell has it back; without
// one, whoever has stopped the agent wanted just that.
func (w *wrapper) agentStopped() {
	if w.streams.terminal.typed() && controlled() {
		w.stop()
	}
}

// suspend stops the agent and us. SIGTSTP would be lost on it: in its terminal there is no shell that could continue it.
func (w *wrapper) suspend() {
	if controlled() {
		w.agent.stop()
		w.stop()
	}
}

// stop stops our process group, as a shell expects of a job, and returns after it was continued.
func (w *wrapper) stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	w.streams.terminal.restore()
	// SIGTSTP would be lost on us: a Go program that has once heard it does not stop at it any more.
	_ = unix.Kill(0, unix.SIGSTOP)
	<-continued
	w.goOn()
}

// goOn takes the terminal again, and has the agent go on.
func (w *wrapper) goOn() {
	w.streams.terminal.raw()
	w.streams.terminal.resize()
	w.agent.goOn()
}

// controlled reports whether a shell controls our group as a job: somebody outside of it, in our session, has started it.
// The kernel calls a group without such a parent orphaned, and does not let a terminal stop it.
func controlled() bool {
	group := unix.Getpgrp()
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	parents := map[int]int{}
	for _, e := range (process.System{}).All() {
		parents[e.PID] = e.Parent
	}
	for pid := os.Getppid(); pid > 1; pid = parents[pid] {
		if of, err := unix.Getpgid(pid); err != nil || of != group {
			theirs, err := unix.Getsid(pid)
			return err == nil && theirs == session
		}
	}
	return false
}
