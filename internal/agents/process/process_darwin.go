package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killTime is how long SIGKILL has to work.
const killTime = 2 * time.Second

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only a zombie.
func (System) Look(pid int) (Process, error) {
	k, err := living(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{Identity: identity(k), Age: time.Since(time.Unix(k.Proc.P_starttime.Unix())), User: strconv.Itoa(int(k.Eproc.Ucred.Uid))}, nil
}

func living(pid int) (*unix.KinfoProc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	const zombie = 5 // SZOMB of sys/proc.h
	if pid <= 0 || err != nil || int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return nil, fmt.Errorf("look at process %d: %w", pid, os.ErrProcessDone)
	}
	return k, nil
}

func identity(k *unix.KinfoProc) Identity {
	return Identity{PID: int(k.Proc.P_pid), Start: uint64(k.Proc.P_starttime.Nano())}
}

// Stop ends everything of a target: terminate, wait, kill. It returns nil only when it has seen that nothing is left,
// otherwise a [StopError]: of the leaders, their groups, and their descendants, as far as their parents lived at its first look.
func (s System) Stop(ctx context.Context, t Target) error {
	for _, phase := range []struct {
		signal unix.Signal
		time   time.Duration
	}{{unix.SIGTERM, t.grace()}, {unix.SIGKILL, killTime}} {
		end := time.Now().Add(phase.time)
		for first := true; ; first = false {
			left := members(t)
			if len(left) == 0 {
				return nil
			}
			t.Leaders = left // one that has ended leads no more to what it has started
			if time.Now().After(end) {
				break
			}
			for _, id := range left {
				sig := phase.signal
				if sig == unix.SIGTERM && !first {
					break
				}
				if sig == unix.SIGTERM && id == t.Wrapper {
					sig = unix.SIGCONT // a stopped one would not end
				}
				if err := strike(id, sig); err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if left := members(t); len(left) > 0 {
		return &StopError{left[0].PID, errStuck}
	}
	return nil
}

// strike looks again before it signals: the number may be a stranger's by now.
func strike(id Identity, sig unix.Signal) error {
	if id.PID == os.Getpid() || id.PID == os.Getppid() {
		return &StopError{id.PID, errOurselves}
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", id.PID)
	if err != nil || identity(k) != id {
		return nil
	}
	if err := unix.Kill(id.PID, sig); errors.Is(err, unix.EPERM) {
		return &StopError{id.PID, os.ErrPermission}
	}
	_ = unix.Kill(id.PID, unix.SIGCONT)
	return nil
}

func members(t Target) []Identity {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	chosen := map[int]bool{}
	var found []Identity
	choose := func(k *unix.KinfoProc) {
		const zombie = 5
		if pid := int(k.Proc.P_pid); !chosen[pid] && pid > 1 && k.Proc.P_stat != zombie {
			chosen[pid] = true
			found = append(found, identity(k))
		}
	}
	for _, l := range t.Leaders {
		alive := false
		for i := range all {
			if identity(&all[i]) == l {
				alive = true
				choose(&all[i])
			}
		}
		for i := range all {
			if alive && int(all[i].Eproc.Pgid) == l.PID {
				choose(&all[i])
			}
		}
	}
	for grown := true; grown; {
		before := len(found)
		for i := range all {
			if chosen[int(all[i].Eproc.Ppid)] {
				choose(&all[i])
			}
		}
		grown = len(found) > before
	}
	return found
}

// FindsStarts says that a start that could not be recorded is not found again.
const FindsStarts = false
