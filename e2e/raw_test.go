package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// raw is a client of a few lines, for tests that time what happens: it sends at once and wants one answer to each id.
type raw struct {
	*workspace
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // stdout has ended

	replies bool                      // answers what the server asks
	idOf    func(json.RawMessage) int // of an answer

	mu       sync.Mutex
	next     int
	waiting  map[int]chan answer
	problems []string
	heard    []string // notifications
}

// strictID reads the id of an answer as it was sent.
func strictID(id json.RawMessage) int {
	n, _ := strconv.Atoi(string(id)) // 0 is nobody's
	return n
}

// answer is what came for a request, and when.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	at     time.Time
}

// text is the first text of a tool result that is not an error.
func (a answer) text() string {
	if r := (reply{Result: a.Result}); a.Error == nil && !r.tool().IsError {
		return r.text()
	}
	return ""
}

func (a answer) String() string { return string(a.Result) + string(a.Error) }

// startRaw starts a command line and nothing more.
func startRaw(t *testing.T, w *workspace, argv []string) *raw {
	t.Helper()
	foreignIn(t, argv...)
	c := &raw{workspace: w, cmd: exec.Command(argv[0], argv[1:]...), waiting: map[int]chan answer{}, ended: make(chan struct{}), idOf: strictID}
	c.cmd.Env, c.cmd.Dir = w.env(), w.dir
	stderr, err := os.OpenFile(w.path("stderr.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	c.cmd.Stderr = stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(out)
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		_ = c.cmd.Wait() // killed, or ended by itself: leave has looked
	})
	return c
}

// connectRaw starts a command line and goes through the handshake and the tools.
func connectRaw(t *testing.T, w *workspace, argv []string) *raw {
	t.Helper()
	c := startRaw(t, w, argv)
	c.handshake(t)
	return c
}

var helloParams = map[string]any{
	"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "raw", "version": "1"},
}

func (c *raw) handshake(t *testing.T) {
	t.Helper()
	c.ask(t, "initialize", helloParams)
	c.initialized(t)
	c.ask(t, "tools/list", nil)
}

func (c *raw) initialized(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *raw) read(out io.Reader) {
	defer close(c.ended)
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		at := time.Now()
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			answer
		}
		if err := json.Unmarshal(line, &m); err != nil {
			c.problem("no JSON: %s", line)
			continue
		}
		if m.Method != "" && m.Result == nil {
			c.hear(m.Method, m.ID, string(line))
			continue
		}
		m.at = at
		c.mu.Lock()
		id := c.idOf(m.ID)
		ch := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if ch == nil {
			c.problem("an answer too many: %s", line)
			continue
		}
		ch <- m.answer
	}
}

// hear takes what the server says by itself. A question is left without an answer, unless the test wants one.
func (c *raw) hear(method string, id json.RawMessage, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == nil {
		c.heard = append(c.heard, line)
		return
	}
	if !c.replies {
		return
	}
	outcome, known := map[string]string{"ping": `"result":{}`, "roots/list": `"result":{"roots":[]}`}[method]
	if !known {
		outcome = `"error":{"code":-32601,"message":"Method not found"}`
	}
	_, _ = fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, outcome) // an end of the process shows elsewhere
}

func (c *raw) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// send writes a request; the channel gets its answer.
func (c *raw) send(method string, params any) <-chan answer {
	ch := make(chan answer, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.waiting[c.next] = ch
	m := map[string]any{"jsonrpc": "2.0", "id": c.next, "method": method}
	if params != nil {
		m["params"] = params
	}
	line, _ := json.Marshal(m)
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		c.problems = append(c.problems, "write: "+err.Error())
	}
	return ch
}

// forget gives up waiting for what has no answer yet; one that comes all the same is a problem.
func (c *raw) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.waiting)
}

func (c *raw) begin(tool string, args map[string]any) <-chan answer {
	return c.send("tools/call", map[string]any{"name": tool, "arguments": args})
}

// await waits for an answer for at most limit.
func (c *raw) await(t *testing.T, ch <-chan answer, limit time.Duration) answer {
	t.Helper()
	select {
	case a := <-ch:
		return a
	case <-c.ended:
		select {
		case a := <-ch:
			return a
		default:
		}
		t.Fatal("outlive has ended")
	case <-time.After(limit):
		t.Fatalf("no answer in %v", limit)
	}
	panic("unreachable")
}

func (c *raw) ask(t *testing.T, method string, params any) answer {
	t.Helper()
	a := c.await(t, c.send(method, params), patience)
	if a.Error != nil {
		t.Fatalf("%s: %s", method, a)
	}
	return a
}

// call calls a tool, which must go well, and returns the text of the result.
func (c *raw) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	a := c.await(t, c.begin(tool, args), patience)
	if a.text() == "" {
		t.Fatalf("%s: %s", tool, a)
	}
	return a.text()
}

func (c *raw) pid(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(c.call(t, "pid", map[string]any{}))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// starts are the processes of the server that have started so far.
func (w *workspace) starts() []int {
	data, _ := os.ReadFile(w.path("pids"))
	var pids []int
	for _, word := range strings.Fields(string(data)) {
		pid, _ := strconv.Atoi(word)
		pids = append(pids, pid)
	}
	return pids
}

// told counts the events of a kind in the audit log.
func (w *workspace) told(t *testing.T, kind string) int {
	n := 0
	for _, e := range w.audit(t) {
		if e["event_type"] == kind {
			n++
		}
	}
	return n
}

// awaitTold waits for the n-th event of a kind.
func (w *workspace) awaitTold(t *testing.T, kind string, n int) {
	t.Helper()
	if !eventually(func() bool { return w.told(t, kind) >= n }) {
		t.Fatalf("%s: told %d times, want %d", kind, w.told(t, kind), n)
	}
}

// leave closes the connection: outlive ends well, every request had one answer, and nothing is left.
func (c *raw) leave(t *testing.T) {
	t.Helper()
	c.in.Close()
	select {
	case <-c.ended:
	case <-time.After(patience):
		t.Fatal("outlive does not end")
	}
	c.noneLeft(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.problems {
		t.Errorf("the client saw: %s", p)
	}
	for id := range c.waiting {
		t.Errorf("request %d has no answer", id)
	}
}
