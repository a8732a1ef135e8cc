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

// ErrNotAvailable is the error of [Listen] where the system does not tell who has sent a datagram.
var ErrNotAvailable = errors.New("sd_notify is available on Linux only")

// NotifyLimit is how long a datagram may be, in bytes; a longer one is left out.
const NotifyLimit = 8 * 1024

// Notice is one datagram of sd_notify(3).
type Notice struct {
	Ready     bool
	Reloading bool
	Stopping  bool
	Watchdog  bool          // WATCHDOG=1: alive
	Trigger   bool          // WATCHDOG=trigger: the sender says itself that it hangs
	Status    string        // one line
	Extend    time.Duration // EXTEND_TIMEOUT_USEC: no sign is to be expected earlier
	MainPID   int           // 0: not said
	Errno     int           // 0: none
	Exit      *int          // EXIT_STATUS, as systemd's containers send it
}

// ParseNotice reads a datagram. Variables that are not known, or make no sense, are left out; without any that says
// something the error wraps [ErrNoBeat]: FDSTORE and the like are no sign of life.
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

// Observation is what a notice says about an agent. pid is the sender's: it may be a helper that speaks for the agent.
// An ERRNO is noted only, since systemd's own tools send one to every NOTIFY_SOCKET when they fail, also as an agent's tool.
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
	// Agent returns a sender's agent; senders without one are ignored.
	Agent func(pid int) (name string, ok bool)
	// Sink takes each notice, on the listener's goroutine.
	Sink func(Observation, Notice)
	// Now is the clock; nil: [time.Now].
	Now func() time.Time
}
