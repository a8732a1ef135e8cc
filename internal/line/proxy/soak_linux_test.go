package proxy

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

var soakTime = flag.Duration("soak", 2*time.Second, "how long TestSoak runs")

const (
	soakCallers = 16
	soakArg     = "outlive-soak-proxy"
)

// A proxy in a process of its own, so that its resources can be measured separately from the test's.
func init() {
	if len(os.Args) > 2 && os.Args[1] == soakArg {
		os.Exit(soakProxy(os.Args[2], os.Args[3:]))
	}
}

// soakProxy serves its own stdin and stdout. SIGHUP asks it for a planned restart, SIGUSR1 for what it holds.
func soakProxy(dir string, argv []string) int {
	in, out := os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
	child.CloseInheritedOnExec()
	child.Prepare()
	p, err := New(Options{
		In: in, Out: out,
		Options: host.Options{
			Stderr: mute{}, Sink: soakEvents{}, MarkerPath: filepath.Join(dir, "marker"), StateDir: dir,
			Backend: backend.Options{Name: "srv", Command: argv, Reload: backend.OverlapReload, Supervise: supervise.Options{
				Backoff: backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}}, Standby: 1,
			}},
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	go func() {
		for s := range signals {
			if s == syscall.SIGUSR1 {
				tellFootprint()
				continue
			}
			// One restart at a time is promised; another that is under way is as good.
			_ = p.Restart(context.Background(), supervise.SourceSignal, "soak")
		}
	}()
	return p.Run()
}

// tellFootprint writes a line that soak.footprint reads.
func tellFootprint() {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd")
	fmt.Fprintln(os.Stderr, "holds", runtime.NumGoroutine(), len(fds), m.HeapAlloc)
}

// soakEvents writes the events that the test counts.
type soakEvents struct{}

func (soakEvents) Emit(e event.Event) { fmt.Fprintln(os.Stderr, "event", e.Type) }

// soak is 16 callers of one proxy with a standby, whose servers and keeper are killed, stopped and replaced.
type soak struct {
	t      *testing.T
	dir    string
	proxy  *mcptest.Process
	stop   chan struct{}
	mu     sync.Mutex
	said   bytes.Buffer      // the proxy's stderr
	ended  map[string]string // how each call ended, by its line: ok, unknown, no, given up
	kinds  map[string]string // tool, by its line
	oddly  []string
	events map[string]int // what the test did
}

// Write takes the proxy's stderr.
func (s *soak) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(b)
}

func (s *soak) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(s.said.String(), "\n")
}

// TestSoak: whatever happens to servers, standbys and the keeper, in any order and at any moment, each call gets
// exactly one answer under its id, byte for byte; what must not be repeated is done at most once; what is answered
// was done; at the end no process is left; and the proxy uses no more resources than before.
func TestSoak(t *testing.T) {
	tier.NeedFull(t, "16 callers meet kills, stops and reloads at random moments, and memory is compared")
	s := &soak{t: t, dir: t.TempDir(), stop: make(chan struct{}), ended: map[string]string{}, kinds: map[string]string{}, events: map[string]int{}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server, _ := mcptest.Command("-starts", filepath.Join(s.dir, "starts"))
	s.proxy, err = mcptest.Spawn(append([]string{self, soakArg, s.dir}, server...), []string{"GORACE=atexit_sleep_ms=0"}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer s.proxy.Close()
	ctx, cancel := context.WithTimeout(t.Context(), *soakTime+2*patience)
	defer cancel()
	if _, err := s.proxy.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.proxy.Call(ctx, "tools/list", nil); err != nil {
		t.Fatal(err)
	}
	chance := tier.Rand(t)
	var all sync.WaitGroup
	for n := range soakCallers {
		own := rand.New(rand.NewPCG(chance.Uint64(), 0))
		all.Go(func() { s.calls(ctx, n, own) })
	}
	s.harm(*soakTime/4, chance) // what is allocated once exists after that
	before := s.footprint()
	for range 3 { // what was killed last may still be open for a moment
		if now := s.footprint(); now.descriptors < before.descriptors {
			before = now
		}
	}
	s.harm(*soakTime-*soakTime/4, chance)
	after := s.footprint()
	for end := time.Now().Add(5 * time.Second); len(before.grown(after)) > 0 && time.Now().Before(end); {
		after = s.footprint() // what has just been killed is let go of a moment later
	}
	close(s.stop)
	all.Wait()
	if err := s.proxy.Verify(); err != nil {
		t.Errorf("the client saw: %v", err)
	}
	s.leave(ctx)
	s.judge()
	t.Logf("done to it: %v; before %+v, after %+v", s.events, before, after)
	for _, what := range before.grown(after) {
		t.Error(what)
	}
}

// calls is one caller: one call after the other, with ids of various forms. Some are cancelled.
func (s *soak) calls(ctx context.Context, n int, chance *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-s.stop:
			return
		default:
		}
		line, id := nameOfCall(n, i)
		tool := []string{"bump", "bump", "idem", "read"}[chance.IntN(4)]
		args := map[string]any{"path": filepath.Join(s.dir, tool), "line": line, "ms": chance.IntN(30)}
		pending := s.proxy.GoID(id, "tools/call", map[string]any{"name": tool, "arguments": args})
		how := "given up"
		if chance.IntN(10) == 0 {
			select {
			case <-pending.Done():
			case <-time.After(time.Duration(chance.IntN(10_000)) * time.Microsecond): // a client's own impatience
			}
			_ = s.proxy.Cancel(pending) // an answer may come still, or have come
		} else {
			result, err := pending.Wait(ctx)
			if how = fate(result, err); how == "" {
				s.mu.Lock()
				s.oddly = append(s.oddly, fmt.Sprintf("%s %s: %s, %v", tool, line, result, err))
				s.mu.Unlock()
			}
			if errors.Is(err, mcptest.ErrClosed) || ctx.Err() != nil {
				return
			}
		}
		s.mu.Lock()
		s.ended[line], s.kinds[line] = how, tool
		s.mu.Unlock()
	}
}

// harm does something unkind every few milliseconds, for a while.
func (s *soak) harm(while time.Duration, chance *rand.Rand) {
	for end := time.Now().Add(while); time.Now().Before(end); {
		time.Sleep(time.Duration(5_000+chance.IntN(60_000)) * time.Microsecond) // the moment is the point; nothing waits on it
		servers := s.servers()
		what := []string{"kill", "kill", "stop", "restart", "restart", "keeper"}[chance.IntN(6)]
		switch {
		case what == "restart":
			_ = s.proxy.Signal(syscall.SIGHUP)
		case what == "keeper":
			for _, pid := range childrenNamed(s.proxy.PID(), "outlive-keeper") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		case len(servers) == 0:
			continue
		default:
			pid := servers[chance.IntN(len(servers))] // the one that serves, the standby, or one that is on its way out
			if what == "kill" {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(time.Duration(chance.IntN(30_000)) * time.Microsecond)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		s.events[what]++
	}
}

// servers are the pids of those that were started and live.
func (s *soak) servers() []int {
	text, err := os.ReadFile(filepath.Join(s.dir, "starts"))
	if err != nil {
		s.t.Fatal(err)
	}
	var alive []int
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			s.t.Fatal(err)
		}
		// A number may be another's by now; only ours have the directory among their arguments.
		if cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(cmdline, []byte(s.dir)) {
			alive = append(alive, pid)
		}
	}
	return alive
}

// childrenNamed are the living children of a process that are called so.
func childrenNamed(parent int, name string) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	var found []int
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(text)) {
			cmdline, err := os.ReadFile("/proc/" + word + "/cmdline")
			if pid, bad := strconv.Atoi(word); err == nil && bad == nil && bytes.HasPrefix(cmdline, []byte(name+"\x00")) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// soakHolds is what the proxy's process holds.
type soakHolds struct {
	goroutines, descriptors int
	heap, rss               int // bytes
}

// footprint waits until the proxy has its server and standby, and nothing on its way out, and reads what it holds. A
// reading counts only if both are still the same after it: what was killed last may die while it is taken.
func (s *soak) footprint() soakHolds {
	s.t.Helper()
	var h soakHolds
	await.Value(s.t, "two servers that stay", func() ([]int, bool) {
		was := s.servers()
		if len(was) != 2 {
			return was, false
		}
		h = s.reading()
		return was, slices.Equal(was, s.servers())
	})
	return h
}

// reading asks the proxy what it holds.
func (s *soak) reading() soakHolds {
	s.t.Helper()
	told := len(s.lines())
	if err := s.proxy.Signal(syscall.SIGUSR1); err != nil {
		s.t.Fatal(err)
	}
	return await.Value(s.t, "the proxy tells what it holds", func() (soakHolds, bool) {
		for _, line := range s.lines()[told-1:] {
			var h soakHolds
			if n, _ := fmt.Sscanf(line, "holds %d %d %d", &h.goroutines, &h.descriptors, &h.heap); n == 3 {
				var pages int
				statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.proxy.PID()))
				_, _ = fmt.Sscanf(string(statm), "%d %d", new(int), &pages)
				h.rss = pages * os.Getpagesize()
				return h, true
			}
		}
		return soakHolds{}, false
	})
}

// grown lists the resources of which a proxy uses more than before, beyond the needs of calls in flight and of the
// measurement.
func (before soakHolds) grown(after soakHolds) []string {
	var list []string
	for _, f := range []struct {
		what                string
		before, after, more int
	}{
		{"goroutines", before.goroutines, after.goroutines, 3},
		{"descriptors", before.descriptors, after.descriptors, 4},
		{"bytes of heap", before.heap, after.heap, 2 << 20},
		{"resident bytes", before.rss, after.rss, 16 << 20},
	} {
		if f.after > f.before+f.more {
			list = append(list, fmt.Sprintf("%s: %d, were %d", f.what, f.after, f.before))
		}
	}
	return list
}

// leave ends the proxy as a client does. No process is left then, not even the keeper.
func (s *soak) leave(ctx context.Context) {
	s.t.Helper()
	keepers := childrenNamed(s.proxy.PID(), "outlive-keeper")
	if len(keepers) != 1 {
		s.t.Errorf("keepers: %v", keepers)
	}
	code, err := s.proxy.Stop(ctx)
	if err != nil || code != 0 {
		s.t.Errorf("exit status %d, %v; it said %q", code, err, s.lines()[max(0, len(s.lines())-20):])
	}
	strays := func() []string {
		var left []string
		for _, pid := range s.servers() {
			left = append(left, fmt.Sprint("server ", pid))
		}
		for _, pid := range keepers {
			if u, err := child.TreeUsage(pid); err == nil && u.State != 'Z' { // ended, but not yet reaped
				left = append(left, fmt.Sprint("keeper ", pid))
			}
		}
		return left
	}
	// The keeper notices the end of its outlive, and the process that adopted the keeper notices the keeper's.
	s.t.Cleanup(func() {
		if s.t.Failed() {
			out, _ := exec.Command("ps", "-ef").Output()
			s.t.Logf("left: %v\n%s", strays(), out)
		}
	})
	await.Value(s.t, "nobody is left", func() ([]string, bool) { left := strays(); return left, len(left) == 0 })
}

// judge compares the callers' answers with what the servers did.
func (s *soak) judge() {
	s.t.Helper()
	total := map[string]map[string]int{}
	for _, tool := range []string{"bump", "idem", "read"} {
		done := map[string]int{}
		for line := range strings.FieldsSeq(readAll(s.t, filepath.Join(s.dir, tool))) {
			done[line]++
		}
		total[tool] = map[string]int{}
		for line, kind := range s.kinds {
			if kind != tool {
				continue
			}
			how := s.ended[line]
			total[tool][how]++
			switch {
			case tool == "bump" && done[line] > 1:
				s.t.Errorf("%s was carried out %d times", line, done[line])
			case how == "ok" && done[line] == 0:
				s.t.Errorf("%s %s was answered and never carried out", tool, line)
			case how == "no" && tool == "bump" && done[line] > 0:
				s.t.Errorf("%s was carried out and said not to be delivered", line)
			}
		}
	}
	for i, u := range s.oddly {
		if i < 10 {
			s.t.Errorf("unexpected answer to %s", u)
		}
	}
	counts := map[string]int{}
	for _, line := range s.lines() {
		if what, ok := strings.CutPrefix(line, "event "); ok {
			counts[what]++
		}
	}
	if total["bump"]["ok"] < soakCallers {
		s.t.Errorf("hardly any call went well: %v", total)
	}
	s.t.Logf("calls %v; events %v", total, counts)
}
