package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hertz is the unit of the start time in /proc/PID/stat: USER_HZ, 100 a second on every Linux.
const hertz = 100

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	pid                    int
	state                  byte
	parent, group, session int
	start                  uint64 // ticks since the machine was started
	cpu                    uint64 // ticks of user and system time
}

func (s procStat) dead() bool { return s.state == 'Z' || s.state == 'X' }

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
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return procStat{}, false
	}
	p := procStat{state: f[0][0]}
	var errs [6]error
	var user, system uint64
	p.parent, errs[0] = strconv.Atoi(f[1])
	p.group, errs[1] = strconv.Atoi(f[2])
	p.session, errs[2] = strconv.Atoi(f[3])
	p.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	user, errs[4] = strconv.ParseUint(f[11], 10, 64)
	system, errs[5] = strconv.ParseUint(f[12], 10, 64)
	p.cpu = user + system
	return p, errors.Join(errs[:]...) == nil
}

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only a zombie.
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
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		dir = ""
	}
	return Process{Identity: Identity{PID: pid, Start: s.start, Boot: bootID()}, Age: ageOf(s), Dir: dir, User: userOf(pid)}, nil
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

func ageOf(s procStat) time.Duration {
	return sinceBoot() - time.Duration(s.start)*(time.Second/hertz)
}

// Start starts a process that outlives us, or finds what was started with this token. The token is in its environment,
// so that a start that could not be recorded is found again.
func (System) Start(l Launch) (Identity, error) {
	if id, ok := startedWith(l.Run); ok {
		return id, nil
	}
	pid, err := start(l)
	if err != nil {
		return Identity{}, err
	}
	s, err := readStat(pid)
	if err != nil { // it has ended already, which the next look will see
		return Identity{PID: pid, Boot: bootID()}, nil
	}
	return Identity{PID: pid, Start: s.start, Boot: bootID()}, nil
}

// startedWith finds the oldest living process that carries a token.
func startedWith(run string) (Identity, bool) {
	var oldest procStat
	for _, s := range allProcesses() {
		if s.pid == os.Getpid() || !isOfRun(s.pid, []string{run}) {
			continue
		}
		if oldest.pid == 0 || s.start < oldest.start || s.start == oldest.start && s.pid < oldest.pid {
			oldest = s
		}
	}
	return Identity{PID: oldest.pid, Start: oldest.start, Boot: bootID()}, oldest.pid != 0
}

// allProcesses is every living process visible to us.
func allProcesses() []procStat {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make([]procStat, 0, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && !s.dead() {
			all = append(all, s)
		}
	}
	return all
}

// isOfRun reports whether a process is a descendant of one of our starts.
func isOfRun(pid int, runs []string) bool {
	if len(runs) == 0 {
		return false
	}
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		value, ok := bytes.CutPrefix(kv, []byte(RunVariable+"="))
		for _, run := range runs {
			if ok && run != "" && string(value) == run {
				return true
			}
		}
	}
	return false
}

// FindsStarts says that a start that could not be recorded is found again.
const FindsStarts = true
