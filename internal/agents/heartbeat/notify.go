package heartbeat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// NotifyLimit is the maximum size of a datagram in bytes. Of a longer one, the whole lines within it are read.
const NotifyLimit = 8 * 1024

// Notice is one datagram of sd_notify(3).
type Notice struct {
	Ready    bool
	Stopping bool
	Watchdog bool          // WATCHDOG=1: alive
	Trigger  bool          // WATCHDOG=trigger: the sender reports that it hangs
	Status   string        // one line
	Extend   time.Duration // EXTEND_TIMEOUT_USEC: do not expect a sign earlier
}

// ParseNotice parses a datagram. Unknown and invalid variables are ignored. If nothing is left that an agent says, as with
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

// set takes a variable, and reports whether it is a sign of life. Some say nothing more than that.
func (n *Notice) set(name, v string) bool {
	number, err := strconv.ParseInt(v, 10, 64)
	isNumber := err == nil && number >= 0
	switch name {
	case "READY":
		n.Ready = v == "1"
		return n.Ready
	case "RELOADING":
		return v == "1"
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
		return isNumber && 0 < number && number <= math.MaxInt32
	case "ERRNO":
		return isNumber && 0 < number && number <= 4095
	case "EXIT_STATUS":
		return isNumber && number <= 255
	}
	return false
}
