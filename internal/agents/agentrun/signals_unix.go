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

// passed are the signals that are forwarded to the agent.
var passed = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

// typed are those that a terminal sends to its whole foreground group.
var typed = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP}

// hear catches our signals. Those ignored when we were started, as by nohup, stay ignored. SIGPIPE is caught so that it
// does not end us: the write's error is enough.
func hear() chan os.Signal {
	heard := make(chan os.Signal, 16)
	for _, sig := range slices.Concat(passed, []os.Signal{unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGPIPE}) {
		if !signal.Ignored(sig) {
			signal.Notify(heard, sig)
		}
	}
	return heard
}

func (w *wrapper) signal(sig os.Signal) {
	if !w.agent.group && slices.Contains(typed, sig) && sig != unix.SIGTSTP {
		return // the terminal has sent it to the agent, too
	}
	switch sig {
	case unix.SIGPIPE:
	case unix.SIGWINCH:
		w.streams.terminal.resize()
	case unix.SIGCONT: // we may have been stopped unnoticed, and the terminal used meanwhile
		w.goOn()
	case unix.SIGTSTP:
		w.suspend()
	default:
		w.agent.signal(sig.(syscall.Signal))
	}
}

// agentStopped handles a stop of the agent. At a terminal we stop as well, so that the shell gets it back; without one,
// the stop was intended.
func (w *wrapper) agentStopped() {
	if w.streams.terminal.typed() && controlled() {
		w.stop()
	}
}

// suspend stops the agent and us. SIGTSTP would not work: in its terminal no shell could continue it.
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
	// SIGTSTP would have no effect: a Go program that has ever handled it does not stop on it.
	_ = unix.Kill(0, unix.SIGSTOP)
	<-continued
	w.goOn()
}

// goOn takes the terminal again, and continues the agent.
func (w *wrapper) goOn() {
	w.streams.terminal.raw()
	w.streams.terminal.resize()
	w.agent.goOn()
}

// controlled reports whether a shell controls our group as a job: a process outside of it, in our session, has started
// it. The kernel calls a group without such a parent orphaned, and ignores terminal stops for it.
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
