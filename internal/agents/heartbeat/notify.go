package heartbeat

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotAvailable is the error of [Listen] where the system does not identify the sender of a datagram.
var ErrNotAvailable = errors.New("sd_notify is available on Linux only")

// NotifyLimit is the maximum size of a datagram in bytes. Of a longer one, the whole lines within it are read.
const NotifyLimit = 8 * 1024

// Notice is one datagram of sd_notify(3).
type Notice struct {
	Ready     bool
	Reloading bool
	Stopping  bool
	Watchdog  bool          // WATCHDOG=1: alive
	Trigger   bool          // WATCHDOG=trigger: the sender reports that it hangs
	Status    string        // one line
	Extend    time.Duration // EXTEND_TIMEOUT_USEC: do not expect a sign earlier
	MainPID   int           // 0: not given
	Errno     int           // 0: none
	Exit      *int          // EXIT_STATUS, as systemd's containers send it
}

// ParseNotice parses a datagram. Unknown and invalid variables are ignored. If nothing useful is left, as with
// FDSTORE alone, the error wraps [ErrNoBeat].
func ParseNotice(text []byte) (Notice, error) {
	var n Notice
	said := false
	for line := range strings.Lines(string(text)) {
		name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if ok && n.set(name, v) {
			said = true
		}
	}
	if !said {
		return Notice{}, fmt.Errorf("sd_notify: no known message: %w", ErrNoBeat)
	}
	return n, nil
}

func (n *Notice) set(name, v string) bool {
	number, err := strconv.ParseInt(v, 10, 64)
	isNumber := err == nil && number >= 0
	switch name {
	case "READY":
		n.Ready = v == "1"
		return n.Ready
	case "RELOADING":
		n.Reloading = v == "1"
		return n.Reloading
	case "STOPPING":
		n.Stopping = v == "1"
		return n.Stopping
	case "WATCHDOG":
		n.Watchdog, n.Trigger = v == "1", v == "trigger"
		return n.Watchdog || n.Trigger
	case "STATUS":
		n.Status = oneLine(v)
		return true
	case "EXTEND_TIMEOUT_USEC":
		if isNumber {
			n.Extend = promise(time.Duration(min(number, math.MaxInt64/1000)) * time.Microsecond)
		}
		return n.Extend > 0
	case "MAINPID":
		if isNumber && 0 < number && number <= math.MaxInt32 {
			n.MainPID = int(number)
		}
		return n.MainPID > 0
	case "ERRNO":
		if isNumber && number <= 4095 {
			n.Errno = int(number)
		}
		return n.Errno > 0
	case "EXIT_STATUS":
		if !isNumber || number > 255 {
			return false
		}
		exit := int(number)
		n.Exit = &exit
		return true
	}
	return false
}

// Observation converts a notice for an agent. pid is the sender's, which may be a helper of the agent. An ERRNO only
// becomes a note: systemd's own tools send one to every NOTIFY_SOCKET when they fail, also when an agent runs them as
// its tool.
func (n Notice) Observation(agent string, pid int, now time.Time) Observation {
	o := Observation{Agent: agent, Source: FromNotify, Tier: SelfReport, Wall: now, Kind: Beat, Note: n.Status, PID: pid, Next: n.Extend, Exit: n.Exit}
	switch {
	case n.Trigger:
		o.State = Stuck
	case n.Stopping:
		o.State = Exiting
	case n.Ready, n.Reloading:
		o.State = Working
	case n.Errno > 0:
		o.Kind = Log
	}
	if n.Errno > 0 && o.Note == "" {
		o.Note = syscall.Errno(n.Errno).Error()
	}
	return o
}

// ListenOptions of [Listen].
type ListenOptions struct {
	// Agent returns the agent of a sender; senders without one are ignored.
	Agent func(pid int) (name string, ok bool)
	// Sink is called with each notice, on the listener's goroutine.
	Sink func(Observation, Notice)
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}
