package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// All is every living process that we can see.
func (System) All() []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make([]Process, 0, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && !s.dead() {
			all = append(all, described(s))
		}
	}
	return all
}

func described(s procStat) Process {
	return Process{
		Identity: Identity{PID: s.pid, Start: s.start, Boot: bootID()}, Program: s.program, Parent: s.parent,
		Age: sinceBoot() - time.Duration(s.start)*(time.Second/hertz), CPU: time.Duration(s.cpu) * (time.Second / hertz),
		Group: s.group, Session: s.session, Stopped: s.state == 'T', // 't' is a debugger's
	}
}

// Args is a process's command line, nil when it is not ours to know.
func (System) Args(pid int) []string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
}

// Variable is a variable of the environment that a process began with. "": it is not set, or not ours to know.
func (System) Variable(pid int, name string) string {
	for kv := range bytes.SplitSeq(Environ(pid), []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// Files are the paths of the regular files that a process has open.
func (System) Files(pid int) []string {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		path, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/") {
			files = append(files, path)
		}
	}
	return files
}
