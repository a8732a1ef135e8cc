package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// BootID identifies this boot of the machine. "": not available.
func BootID() string { return bootID() }

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// FindsStarts says that a start that could not be recorded is found again.
const FindsStarts = true

func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// hertz is the unit of the start time in /proc/PID/stat: USER_HZ, 100 a second on every Linux.
const hertz = 100

// kernelThread is the kernel's PF_KTHREAD.
const kernelThread = 0x00200000

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	pid                    int
	program                string // its name, of 15 bytes at most
	state                  byte
	kernel                 bool // a thread of the kernel
	bare                   bool // it began with an empty environment
	parent, group, session int
	start                  uint64 // ticks since the machine was started
	cpu                    uint64 // ticks of user and system time
	threads                int    // with its leader, until that can be waited for
}

// dead reports whether the process has ended: it can be waited for, or has been. A leader that has ended before its
// other threads is a zombie, too; the process ends with the last of them.
func (s procStat) dead() bool { return s.state == 'X' || s.hollow() && s.threads <= 1 }

// hollow reports whether the leader has ended. Its memory is not shown any more, even if other threads live.
func (s procStat) hollow() bool { return s.state == 'Z' }

func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		if unix.Kill(pid, 0) == unix.EPERM { // /proc hides other users' processes; EPERM means alive
			return procStat{}, os.ErrPermission
		}
		return procStat{}, os.ErrProcessDone
	}
	if err != nil {
		return procStat{}, err
	}
	s, ok := parseStat(string(b))
	if !ok {
		return procStat{}, fmt.Errorf("unexpected content of /proc/%d/stat", pid)
	}
	s.pid = pid
	return s, nil
}

// parseStat reads the fields after the command, whose text may contain anything.
func parseStat(s string) (procStat, bool) {
	before, after := s, s
	if end := strings.LastIndexByte(s, ')'); end >= 0 {
		before, after = s[:end], s[end+1:]
	}
	f := strings.Fields(after)
	if len(f) < 20 || len(f[0]) != 1 {
		return procStat{}, false
	}
	p := procStat{state: f[0][0]}
	_, p.program, _ = strings.Cut(before, "(")
	var errs [8]error
	var flags, user, system uint64
	p.parent, errs[0] = strconv.Atoi(f[1])
	p.group, errs[1] = strconv.Atoi(f[2])
	p.session, errs[2] = strconv.Atoi(f[3])
	p.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	user, errs[4] = strconv.ParseUint(f[11], 10, 64)
	system, errs[5] = strconv.ParseUint(f[12], 10, 64)
	flags, errs[6] = strconv.ParseUint(f[6], 10, 64)
	p.threads, errs[7] = strconv.Atoi(f[17])
	p.cpu = user + system
	p.bare = len(f) > 48 && f[47] == f[48] && f[48] != "0" // first and last address of the environment
	p.kernel = flags&kernelThread != 0
	return p, errors.Join(errs[:]...) == nil
}

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only one that waits
// to be waited for.
func (System) Look(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, os.ErrProcessDone
	}
	s, err := readStat(pid)
	if err == nil && s.dead() {
		err = os.ErrProcessDone
	}
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	p := described(s)
	if dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd")); err == nil {
		p.Dir = dir
	}
	p.User = userOf(pid)
	return p, nil
}

// Identify is the identity of a process that we have started. One that has ended, which the next look will see, has its start time
// until it is reaped: without one, an identity may be that of whoever has the number next.
func (System) Identify(pid int) Identity {
	s, _ := readStat(pid) // of one that was reaped already the start time is 0
	return Identity{PID: pid, Start: s.start, Boot: bootID()}
}

// userOf is the effective user of a process. The owner of its directory in /proc is another one where it may not be dumped.
func userOf(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if ids, found := strings.CutPrefix(line, "Uid:"); found {
			if f := strings.Fields(ids); len(f) > 1 {
				return f[1]
			}
		}
	}
	return ""
}

// send signals a process if it is still the same one. That goes through a pidfd that was opened before the process is
// examined, so that no other one with its number is hit; or without, where the kernel (before 5.3) or a sandbox has none.
func send(id Identity, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	refused := errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
	switch {
	case err == nil:
		defer unix.Close(fd)
	case !refused:
		return sent(id, err)
	}
	if s, err := readStat(id.PID); err != nil || s.start != id.Start {
		return os.ErrProcessDone
	}
	if refused {
		return sent(id, unix.Kill(id.PID, sig))
	}
	return sent(id, unix.PidfdSendSignal(fd, sig, nil, 0))
}

// While a process executes another program it has no environment for a moment, and a busy machine can stop it there. It is looked at
// execLooks times, a millisecond or more apart, or bareLooks times when it seems to have been started without any, as it also does for
// an instant.
const (
	execLooks = 200
	bareLooks = 5
)

// environSize is more than nearly all environments have, in bytes: one that is read at once is whole, whatever the process executes then.
const environSize = 32 << 10

// Environ is the environment that a process began with, as /proc shows it; nil when it is not ours to know.
func Environ(pid int) []byte {
	bare := 0
	for range execLooks {
		env, err := readEnviron(pid)
		if err != nil || len(env) > 0 {
			return env
		}
		s, err := readStat(pid)
		if err != nil || s.hollow() || s.dead() || s.kernel {
			return nil
		}
		if !s.bare {
			bare = 0
		} else if bare++; bare == bareLooks {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func readEnviron(pid int) ([]byte, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := bytes.NewBuffer(make([]byte, 0, environSize))
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}
