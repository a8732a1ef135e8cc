package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// workspace is the directory of one session: the server's traces, the client's stderr, outlive's state and audit log.
// Every process of the session carries it in its environment (E2E_DIR), which tells its left-over processes apart.
type workspace struct {
	t   *testing.T
	dir string
	// began is when, by the wall clock: traces and what a client logs have the time in ms since 1970, and a failure shows it
	// in ms since then.
	began time.Time

	broken atomic.Bool // something never came: the rest of the session would only wait
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	w := &workspace{t: t, dir: t.TempDir(), began: time.Now()}
	for _, d := range []string{"state", "run", "config", "user"} {
		if err := os.Mkdir(w.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.explain)
	return w
}

func (w *workspace) path(name string) string { return filepath.Join(w.dir, name) }

// env is the environment of everything in this session. It has a home of its own: where a client hands on no XDG variables (the Inspector,
// Codex), outlive is found in the home, and other tests would see it there.
func (w *workspace) env() []string {
	env := []string{"E2E_DIR=" + w.dir, "HOME=" + w.path("user"), "XDG_STATE_HOME=" + w.path("state"), "XDG_RUNTIME_DIR=" + w.path("run"), "XDG_CONFIG_HOME=" + w.path("config")}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "OUTLIVE_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "E2E_") || name == "HOME" {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// wrap is the command line a client starts: the server's behind outlive, or the server's alone.
func (w *workspace) wrap(argv []string, flags ...string) []string {
	if direct() {
		return argv
	}
	cmd := append([]string{tools.outlive, "run", "--audit", w.path("audit.log"), "--restart-delay", "0", "--max-restarts", "0"}, flags...)
	return append(append(cmd, "--"), argv...)
}

// rawTraces are the lines the servers wrote, "pid tool value", in order; the time that stands before them is for explain.
func (w *workspace) rawTraces() []string {
	data, _ := os.ReadFile(w.path("trace"))
	var lines []string
	for line := range strings.Lines(string(data)) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, line)
	}
	return lines
}

// traces are the same without the pid.
func (w *workspace) traces() []string {
	var lines []string
	for _, line := range w.rawTraces() {
		_, rest, _ := strings.Cut(line, " ")
		lines = append(lines, rest)
	}
	return lines
}

// count tells how often a trace line was written, over all processes of the server.
func (w *workspace) count(line string) int {
	n := 0
	for _, l := range w.traces() {
		if l == line {
			n++
		}
	}
	return n
}

// awaitTrace waits until the server has written the line at least n times.
func (w *workspace) awaitTrace(t *testing.T, line string, n int) {
	t.Helper()
	if !eventually(func() bool { return w.count(line) >= n }) {
		w.broken.Store(true)
		t.Fatalf("trace %q: seen %d times in %v, want %d", line, w.count(line), patience, n)
	}
}

func eventually(ok func() bool) bool { return within(patience, ok) }

func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// kill sends SIGKILL to one process.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 0 { // it would be a group of processes, this one among them
		t.Fatalf("kill %d: there is no such process", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill server %d: %v", pid, err)
	}
}

// killed kills a process and returns when it is dead. A process that waits in read(2) while the signal is on its way
// can still take bytes off the pipe that its program never sees, so only a call sent after this is provably unread.
func killed(t *testing.T, pid int) {
	t.Helper()
	kill(t, pid)
	if !eventually(func() bool { return dead(pid) }) {
		t.Fatalf("server %d survives SIGKILL", pid)
	}
}

// dead says whether nothing of the process runs any more.
func dead(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if len(tasks) == 0 {
		return true
	}
	stat, _ := os.ReadFile(tasks[0])
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(tasks) == 1 && (len(rest) == 0 || bytes.HasPrefix(rest, []byte("Z")) || bytes.HasPrefix(rest, []byte("X")))
}

// freeze stops a process and returns once something lies unread on its stdin, so that a kill then hits a server
// that provably has not read it.
func (w *workspace) freeze(t *testing.T, pid int, send func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop server %d: %v", pid, err)
	}
	if !eventually(func() bool { return stopped(pid) }) {
		w.broken.Store(true)
		t.Fatalf("server %d does not stop", pid)
	}
	send()
	if !eventually(func() bool { return unread(pid) }) {
		w.broken.Store(true)
		t.Fatal("the request never reached the pipe of the stopped server")
	}
}

// stopped says whether every thread of the process has stopped.
func stopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range stats {
		stat, _ := os.ReadFile(name)
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if !bytes.HasPrefix(rest, []byte("T")) {
			return false
		}
	}
	return len(stats) > 0
}

// unread says whether bytes wait in a pipe that the process reads. Not only descriptor 0 counts: the Python SDK moves
// its stdin to another one.
func unread(pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		info, err := os.Lstat(fd)
		target, _ := os.Readlink(fd)
		if err != nil || !strings.HasPrefix(target, "pipe:") || info.Mode()&0o600 != 0o400 {
			continue
		}
		pipe, err := os.OpenFile(fd, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
		pipe.Close()
		if err == nil && n > 0 {
			return true
		}
	}
	return false
}

// processes lists the living processes whose environment names this session and whose command line contains part.
func (w *workspace) processes(part string) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	cookie := []byte("E2E_DIR=" + w.dir + "\x00")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(append(environ, 0), cookie) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		line := strings.TrimSpace(string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		if line != "" && strings.Contains(line, part) {
			found[pid] = line
		}
	}
	return found
}

// serverPIDs are the living processes of the server itself, without client and outlive, which name it in their
// arguments too.
func (w *workspace) serverPIDs(s server) []int {
	var pids []int
	for pid, line := range w.processes(s.match) {
		if strings.HasPrefix(line, strings.Join(s.argv, " ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noneLeft fails the test when a process of the session is still there.
func (w *workspace) noneLeft(t *testing.T) {
	t.Helper()
	if !within(inFull(3*time.Second), func() bool { return len(w.processes("")) == 0 }) {
		for pid, line := range w.processes("") {
			t.Errorf("left over: process %d: %s", pid, line)
		}
	}
}

// explain shows what happened in a session that failed, and sweeps what it left.
func (w *workspace) explain() {
	for pid := range w.processes("") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if !w.t.Failed() {
		return
	}
	for _, name := range []string{"stderr.log", "audit.log", "trace", "client.log"} {
		data, _ := os.ReadFile(w.path(name))
		lines := strings.SplitAfter(string(data), "\n")
		if from := len(lines) - 200; from > 0 {
			lines = append([]string{fmt.Sprintf("… %d lines …\n", from)}, lines[from:]...)
		}
		for i, line := range lines {
			lines[i] = w.sinceStart(line)
		}
		w.t.Logf("%s, began %s:\n%s", name, w.began.UTC().Format("15:04:05.000"), strings.Join(lines, ""))
	}
}

// sinceStart puts the time that a line begins with, ms since 1970, in ms since the session began. Other lines stay as they are.
func (w *workspace) sinceStart(line string) string {
	first, rest, _ := strings.Cut(line, " ")
	ms, err := strconv.ParseInt(first, 10, 64)
	if err != nil || len(first) < 13 {
		return line
	}
	return fmt.Sprintf("%6d ms %s", ms-w.began.UnixMilli(), rest)
}

// lineTime is the time that a line tells of itself: in ms since 1970 (traces, clients), or as the log lines and the audit log
// have it.
var lineTime = regexp.MustCompile(`^(\d{13}) |^(?:\[|\{"timestamp":")([0-9T:.-]+Z)`)

// since returns the first lines of a file from a time on, at most so many. A line without a time belongs to the one before.
func (w *workspace) since(name string, from time.Time, most int) string {
	data, _ := os.ReadFile(w.path(name))
	var lines []string
	in := false
	for line := range strings.Lines(string(data)) {
		if m := lineTime.FindStringSubmatch(line); m != nil {
			at, err := time.Parse(time.RFC3339Nano, m[2])
			if ms, msErr := strconv.ParseInt(m[1], 10, 64); msErr == nil {
				at, err = time.UnixMilli(ms), nil
			}
			in = err == nil && !at.Before(from)
		}
		if in {
			lines = append(lines, w.sinceStart(line))
		}
		if len(lines) == most {
			break
		}
	}
	return strings.Join(lines, "")
}

// note adds a line to what the client sent, received and saw.
func (w *workspace) note(format string, args ...any) {
	f, err := os.OpenFile(w.path("client.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return // the session is over and its directory gone
	}
	defer f.Close()
	fmt.Fprintf(f, "%d %.400s\n", time.Now().UnixMilli(), fmt.Sprintf(format, args...))
}
