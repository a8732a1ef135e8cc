package process

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Times of a stop.
const (
	killTime = 2 * time.Second       // in which SIGKILL must have worked
	scanWait = 50 * time.Millisecond // between two looks at all processes, unless the system tells of an end
)

// Stop ends everything of a target: terminate, wait, kill. It returns nil only when it has seen that nothing is left,
// otherwise a [StopError]. Each process is examined again before it is signalled: its number may be a stranger's by now.
// Where the system tells no environments, what had lost its parent before the first look is found by its group alone.
func (s System) Stop(ctx context.Context, t Target) error {
	all := s.All()
	h := newTermination(t, all)
	for _, l := range t.Leaders {
		if h.above[l.PID] && s.mayBe(l) {
			return &StopError{l.PID, errOurselves}
		}
	}
	type phase struct {
		signal syscall.Signal
		time   time.Duration
	}
	phases := []phase{{syscall.SIGTERM, cmp.Or(t.Grace, StopGrace)}, {syscall.SIGKILL, killTime}}
	if !canAsk {
		phases = phases[1:]
	}
	exits := NewExits()
	defer exits.Close()
	for _, p := range phases {
		for end := time.Now().Add(p.time); ; all = s.All() {
			left, err := h.strike(p.signal, all)
			if err != nil || len(left) == 0 {
				return err
			}
			if !time.Now().Before(end) {
				break
			}
			exits.Watch(identities(left)) // who obeys at once is not waited for
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-exits.C:
			case <-time.After(scanWait):
			}
		}
	}
	if left := h.members(s.All()); len(left) > 0 {
		return &StopError{left[0].PID, errStuck}
	}
	return nil
}

func identities(all []Process) (ids []Identity) {
	for _, p := range all {
		ids = append(ids, p.Identity)
	}
	return ids
}

// mayBe reports whether the process that has the number of an identity now may be the one that is meant. One that cannot be
// looked at may be.
func (s System) mayBe(id Identity) bool {
	p, err := s.Look(id.PID)
	return id.Boot == BootID() && (err != nil || p.Identity == id)
}

// termination is one stop.
type termination struct {
	target Target
	above  map[int]bool      // us and our ancestors: never touched
	asked  map[Identity]bool // those that have had SIGTERM: once is enough
	known  map[Identity]bool // all members that were seen: one that is ending has no environment any more, and may have no parent
}

func newTermination(t Target, all []Process) *termination {
	return &termination{target: t, above: ancestors(all), asked: map[Identity]bool{}, known: map[Identity]bool{}}
}

// strike signals every member and returns those that were alive.
func (h *termination) strike(sig syscall.Signal, all []Process) ([]Process, error) {
	members := h.members(all)
	for _, m := range members {
		asks := sig == syscall.SIGTERM
		if asks && h.asked[m.Identity] {
			continue
		}
		if asks && m.Identity == h.target.Wrapper {
			_ = send(m.Identity, goOn) // a stopped one would not end
			h.asked[m.Identity] = true
			continue
		}
		err := send(m.Identity, sig)
		switch {
		case errors.Is(err, os.ErrPermission):
			return nil, err // that is not death
		case err == nil && asks:
			h.asked[m.Identity] = true
			_ = send(m.Identity, goOn) // a stopped process would not handle it
		}
	}
	return members, nil
}

// members are the living of the target, leaders first.
func (h *termination) members(all []Process) []Process {
	chosen := map[int]Process{}
	var found []Process
	choose := func(e Process) {
		if _, is := chosen[e.PID]; !is && !h.above[e.PID] {
			chosen[e.PID] = e
			h.known[e.Identity] = true
			found = append(found, e)
		}
	}
	for _, l := range h.target.Leaders {
		h.ofLeader(l, all, choose)
	}
	for _, e := range all {
		if h.known[e.Identity] || isOfRun(e.PID, h.target.Runs) && !vendorDaemon(e.PID) {
			choose(e)
		}
	}
	// Children of a chosen process belong to it. A child may have a smaller number than its parent.
	for before := -1; before < len(found); {
		before = len(found)
		for _, e := range all {
			_, is := chosen[e.PID]
			if parent, ours := chosen[e.Parent]; ours && !is && e.isOf(parent) && !h.above[e.PID] && !vendorDaemon(e.PID) {
				choose(e)
			}
		}
	}
	return found
}

// ofLeader chooses a leader, if it is still the same process, and its session and group. The kernel does not reuse the
// number of a session or group that still has members.
func (h *termination) ofLeader(l Identity, all []Process, choose func(Process)) {
	if l.PID <= 1 || l.Boot != BootID() {
		return
	}
	leads, alive := true, false
	for _, e := range all {
		if e.PID == l.PID {
			alive = e.Identity == l
			leads = alive && (e.Session == l.PID || e.Group == l.PID)
			if alive {
				choose(e)
			}
		}
	}
	if !leads {
		return
	}
	for _, e := range all {
		if e.Session != l.PID && e.Group != l.PID {
			continue
		}
		if (alive || time.Now().Add(-e.Age).Before(h.target.LeftBefore)) && !vendorDaemon(e.PID) {
			choose(e)
		}
	}
}

// isOf reports whether a process with a parent's number is its child.
func (e Process) isOf(parent Process) bool { return !orphansKeepParent || e.Start >= parent.Start }

// ancestors are we and the processes above us.
func ancestors(all []Process) map[int]bool {
	numbered := map[int]Process{}
	for _, e := range all {
		numbered[e.PID] = e
	}
	above := map[int]bool{os.Getpid(): true, 1: true}
	for e := numbered[os.Getpid()]; e.Parent > 1 && !above[e.Parent]; {
		parent, found := numbered[e.Parent] // not found: it is hidden from us, and above us all the same
		if found && !e.isOf(parent) {
			break
		}
		above[e.Parent] = true
		e = parent
	}
	above[os.Getppid()] = true
	return above
}

// isOfRun reports whether a process is a descendant of one of our starts.
func isOfRun(pid int, runs []string) bool {
	if len(runs) == 0 {
		return false
	}
	run := System{}.Variable(pid, RunVariable)
	return run != "" && slices.Contains(runs, run)
}

// vendorDaemons are words in the command lines of daemons that serve every session of an agent, not only ours.
var vendorDaemons = []string{"--managed-daemon", "pid-update-loop"}

func vendorDaemon(pid int) bool {
	return slices.ContainsFunc(System{}.Args(pid), func(arg string) bool {
		return slices.ContainsFunc(vendorDaemons, func(word string) bool { return strings.Contains(arg, word) })
	})
}
