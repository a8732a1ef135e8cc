package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A server built with Go 1.26.8 now and then runs the handler of a request that it has read only when more input comes. Its collector
// stops the world and misses the goroutine that is just entering read(2) on stdin, so everything waits for that call to return.
// Seen with a client written in C that was joined to this server without outlive: in one of 2,401,910 calls at load 60, and with
// GOGC=1, hence a collection every few calls, in one of 105,140. stdin was empty, its reader was in read(2), one thread repeated
// futex waits of 0.1 ms (stopTheWorldWithSema), and all others slept. The answer came with the next message. Nobody in between can
// prevent that. So goserver collects no garbage. Should a call lie nevertheless, the test has to say who holds it: it writes a
// blank line, past outlive, into the server's stdin. What that releases was held by the server, and nothing else is.
const (
	// stuckAfter is how long a call of a storm may be without an answer until everything that may hold it is looked at. No other
	// call of a storm takes that long: outlive itself gives one up after 25 s only while there is no server.
	stuckAfter = 10 * time.Second
	// releasedWithin is how soon after the blank line the answer of a call that its server held is there.
	releasedWithin = 5 * time.Second
)

// answer waits for the answer to a call, and looks for it if it does not come.
func (c *caller) answer(n int, ch <-chan reply) (r reply, answered bool) {
	select {
	case r := <-ch:
		return r, true
	case <-time.After(cmp.Or(c.patience, stuckAfter)):
	}
	c.t.Logf("client %d, step %d: no answer for %v. Its processes:\n%s", c.number, n, cmp.Or(c.patience, stuckAfter), c.describeAll())
	c.eachServer(feedBlankLine)
	select {
	case r := <-ch:
		c.t.Logf("client %d, step %d: answered when its server was given a blank line, past outlive", c.number, n)
		c.held++
		return r, true
	case <-time.After(releasedWithin):
	}
	c.eachServer(func(pid int) { _ = syscall.Kill(pid, syscall.SIGQUIT) }) // its goroutines are then in stderr.log
	select {
	case <-ch: // an error by now: its server was ended
	case <-time.After(patience):
	}
	return reply{}, false
}

// isMine reports whether a command line is that of an outlive behind which this client is.
func (c *caller) isMine(line string) bool {
	return strings.HasPrefix(line, tools.outlive+" ") && (c.prefix != "" || strings.Contains(line, fmt.Sprintf("--name storm%d ", c.number)))
}

// describeAll tells of all processes between this client and its server how much lies unread in each pipe, and what each thread
// waits for.
func (c *caller) describeAll() string {
	var report strings.Builder
	for pid, line := range c.processes(tools.outlive + " ") {
		if c.isMine(line) {
			describeTree(&report, pid)
		}
	}
	return report.String()
}

// describeFrom describes the processes of a workspace whose command line contains a text, and all that they have started.
func (w *workspace) describeFrom(part string) string {
	var report strings.Builder
	for pid := range w.processes(part) {
		describeTree(&report, pid)
	}
	return report.String()
}

func describeTree(to *strings.Builder, pid int) {
	for _, p := range descendants(pid) {
		describe(to, p)
	}
}

// eachServer does something to each server behind this client's outlive, retired ones included.
func (c *caller) eachServer(do func(pid int)) {
	for pid, line := range c.processes(tools.outlive + " ") {
		if !c.isMine(line) {
			continue
		}
		for _, p := range descendants(pid)[1:] {
			if !strings.HasPrefix(commandLine(p), "outlive-keeper ") {
				do(p)
			}
		}
	}
}

// feedBlankLine writes a newline to the stdin of a process. Between two messages it means nothing.
func feedBlankLine(pid int) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/0", pid), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it may have ended
	}
	_, _ = unix.Write(fd, []byte("\n"))
	_ = unix.Close(fd)
}

// TestWhoHoldsACall: a call that a blank line to the server's stdin releases counts as held by the server; one that no line
// releases does not.
func TestWhoHoldsACall(t *testing.T) {
	needFull(t, "it tries how storms find out who holds a call, by limits of ten seconds")
	needOutlive(t)
	t.Parallel()
	for _, kind := range []string{"holds", "loses"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			argv := append([]string{tools.outlive, "run", "--name", "storm0", "--"}, oddServer(kind).argv...)
			c := &caller{session: w.join(t, clients()["go-legacy"], argv...), backends: 1}
			r := c.ask(0, "echo", map[string]any{"text": "hello"})
			if kind == "holds" && (r.text() != "hello" || c.held != 1) {
				t.Errorf("answer %s, %d held, want hello and 1", r, c.held)
			}
			if kind == "loses" && (r.Error == nil || c.held != 0) {
				t.Errorf("answer %s, %d held, want none and 0", r, c.held)
			}
			_, closed := c.begin(step{"op": "close"}) // the second client's outlive was ended for what it tells then
			<-closed
		})
	}
}

// descendants are a process and all that it and its children have started, the parents first.
func descendants(pid int) []int {
	all := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // a thread may have ended
		for _, field := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, descendants(child)...)
			}
		}
	}
	return all
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}

// describe writes what each thread of a process waits for, and how many bytes lie unread in the pipes that it reads.
func describe(to *strings.Builder, pid int) {
	fmt.Fprintf(to, "%d %s\n", pid, commandLine(pid))
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		waits, _ := os.ReadFile(filepath.Join(thread, "wchan"))
		call, _ := os.ReadFile(filepath.Join(thread, "syscall"))
		stat, _ := os.ReadFile(filepath.Join(thread, "stat"))
		_, state, _ := strings.Cut(string(stat), ") ")
		fmt.Fprintf(to, "  thread %s: %.1s %s, system call %s\n", filepath.Base(thread), state, waits, strings.TrimSpace(string(call)))
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		target, _ := os.Readlink(file)
		if !strings.HasPrefix(target, "pipe:") {
			continue
		}
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		unread, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
		_ = unix.Close(fd)
		info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, filepath.Base(file)))
		_, flags, _ := strings.Cut(string(info), "flags:\t")
		flags, _, _ = strings.Cut(flags, "\n")
		fmt.Fprintf(to, "  descriptor %s, %s, flags %s: %d bytes unread %v\n", filepath.Base(file), target, flags, unread, err)
	}
}
