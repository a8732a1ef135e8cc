package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// sdkServers are the servers whose restarts real users have.
var sdkServers = []string{"go", "py", "ts"}

// stream is calls that keep coming, eight at a time. Each must go well.
type stream struct {
	c    *raw
	stop chan struct{}
	all  sync.WaitGroup

	mu     sync.Mutex
	calls  int
	failed []string
	worst  time.Duration
}

func (c *raw) stream(t *testing.T, tool string, args map[string]any) *stream {
	s := &stream{c: c, stop: make(chan struct{})}
	for range 8 {
		s.all.Go(func() {
			for {
				begin := time.Now()
				var a answer
				select {
				case <-s.stop:
					return
				case a = <-c.begin(tool, args):
				case <-time.After(patience):
				}
				s.mu.Lock()
				s.calls++
				s.worst = max(s.worst, time.Since(begin))
				if a.text() == "" {
					s.failed = append(s.failed, a.String())
				}
				s.mu.Unlock()
				time.Sleep(2 * time.Millisecond) // so that the new process gets its share of the machine
			}
		})
	}
	t.Cleanup(func() { s.end(t) })
	return s
}

// end stops the calls and judges them.
func (s *stream) end(t *testing.T) {
	t.Helper()
	select {
	case <-s.stop:
		return
	default:
	}
	close(s.stop)
	s.all.Wait()
	t.Logf("%d calls meanwhile, the longest %v", s.calls, s.worst.Round(100*time.Microsecond))
	if len(s.failed) > 0 || s.calls == 0 {
		t.Errorf("%d of %d calls failed, such as %v", len(s.failed), s.calls, s.failed[:min(3, len(s.failed))])
	}
}

// TestSpareTakesOver: a call that is sent when the server has just been killed is answered by the process that stood by.
func TestSpareTakesOver(t *testing.T) {
	besideOthers(t)
	needOutlive(t)
	for _, name := range sdkServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			c := connectRaw(t, w, w.wrap(servers()[name].argv, "--standby", "1"))
			for i := range 5 {
				w.awaitTold(t, "standby_ready", i+1)
				old, before := c.pid(t), w.starts()
				begin := time.Now()
				kill(t, old)
				a := c.await(t, c.begin("pid", map[string]any{}), patience)
				t.Logf("answered %v after the kill", a.at.Sub(begin).Round(10*time.Microsecond))
				now := c.pid(t)
				if a.text() == "" || now == old || !slices.Contains(before, now) {
					t.Errorf("answered %s by process %d, want one of %v that is not %d", a, now, before, old)
				}
			}
			c.leave(t)
		})
	}
}

// TestAnnouncedRestarts: however a restart is asked for, with a spare no call that flows meanwhile fails.
func TestAnnouncedRestarts(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range sdkServers {
		for _, how := range []struct {
			tool string
			args map[string]any
		}{{"restart_server", map[string]any{"reason": "e2e"}}, {"marker", map[string]any{}}, {"leave", map[string]any{"code": 42}}} {
			t.Run(name+"/"+how.tool, func(t *testing.T) {
				onePerKind(t, name == map[string]string{"restart_server": "go", "marker": "py", "leave": "ts"}[how.tool])
				t.Parallel()
				w := newWorkspace(t)
				c := connectRaw(t, w, w.wrap(servers()[name].argv, "--standby", "1"))
				w.awaitTold(t, "standby_ready", 1)
				old := c.pid(t)
				s := c.stream(t, "echo", map[string]any{"text": "x"})
				c.call(t, how.tool, how.args)
				w.awaitTold(t, "restart_completed", 1)
				w.awaitTold(t, "standby_ready", 2)
				if now := c.pid(t); now == old {
					t.Errorf("it is still process %d", old)
				}
				s.end(t)
				c.leave(t)
			})
		}
	}
}

// TestBrokenSave: a save that breaks a watched server costs no call, and the one that mends it is live soon.
func TestBrokenSave(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	code, err := os.ReadFile(servers()["py"].argv[1])
	if err != nil {
		t.Fatal(err)
	}
	path := w.path("server.py")
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	save(string(code))
	begin := time.Now()
	c := connectRaw(t, w, w.wrap([]string{tools.python, path}, "--watch", "auto"))
	start := time.Since(begin)
	old := c.pid(t)
	s := c.stream(t, "echo", map[string]any{"text": "x"})
	save("def broken(:\n")
	w.awaitTold(t, "reload_failed", 1)
	if now := c.pid(t); now != old {
		t.Errorf("process %d serves after a broken save, want %d", now, old)
	}
	begin = time.Now()
	save(strings.Replace(string(code), "py-server", "py-server-mended", 1))
	w.awaitTold(t, "restart_completed", 1)
	t.Logf("live %v after the save; its start takes %v", time.Since(begin).Round(time.Millisecond), start.Round(time.Millisecond))
	s.end(t)
	if now := c.pid(t); now == old {
		t.Errorf("process %d still serves after the mended save", old)
	}
	c.leave(t)
}

// TestLauncherIsLeftOut: a restart of what npx runs goes without npx. By how much that is faster the benchmark tells: here
// npx finds the package installed, which is the best case for it.
func TestLauncherIsLeftOut(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	argv := []string{"npx", "--prefix", tools.root, "mcp-server-everything", "stdio"}
	begin := time.Now()
	c := connectRaw(t, w, w.wrap(argv, "--no-fast-start"))
	first := time.Since(begin)
	w.awaitTold(t, "launcher_resolved", 1)
	soonest := time.Hour
	for range 3 {
		var server int
		if !eventually(func() bool { server = w.leaf("mcp-server-everything", "dist/index.js"); return server > 0 }) {
			t.Fatalf("the server is not found among %v", w.processes(""))
		}
		begin := time.Now()
		killed(t, server)
		c.ask(t, "tools/list", nil)
		again := time.Since(begin)
		t.Logf("first start %v, restart %v: %.2f", first.Round(time.Millisecond), again.Round(time.Millisecond), again.Seconds()/first.Seconds())
		soonest = min(soonest, again) // one of them may meet the load of other tests
		for pid, line := range w.processes("") {
			if strings.HasPrefix(line, "npm exec") || strings.Contains(line, "bin/npx") && !strings.Contains(line, tools.outlive) {
				t.Errorf("the launcher runs again, process %d: %s", pid, line)
			}
		}
	}
	inTime(t, "the soonest restart without the launcher, to be sooner than the first start, came", soonest, first)
	c.leave(t)
}

// leaf is the process of the session that runs node with one of these scripts, 0 if there is none.
func (w *workspace) leaf(scripts ...string) int {
	for pid, line := range w.processes("") {
		words := strings.Fields(line)
		if len(words) < 2 || filepath.Base(words[0]) != "node" || strings.Contains(words[1], "npx") {
			continue
		}
		if slices.ContainsFunc(scripts, func(s string) bool { return strings.HasSuffix(words[1], s) }) {
			return pid
		}
	}
	return 0
}

// TestLeakIsReplaced: a server that takes more and more memory is replaced before that matters, and no call fails.
func TestLeakIsReplaced(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	c := connectRaw(t, w, w.wrap(sickServer(), "--max-rss", "100MiB"))
	old := c.pid(t)
	s := c.stream(t, "echo", map[string]any{"text": "x"})
	c.call(t, "leak", map[string]any{"mb": 95}) // over the limit, but not by so much that it would be ended at once
	w.awaitTold(t, "restart_completed", 1)
	s.end(t)
	if now := c.pid(t); now == old {
		t.Errorf("it is still process %d", old)
	}
	for _, bad := range []string{"server_crashed", "request_lost", "request_resent"} {
		if n := w.told(t, bad); n > 0 {
			t.Errorf("%s: told %d times", bad, n)
		}
	}
	c.leave(t)
}
