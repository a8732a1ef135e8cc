package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "also run what takes minutes: servers that hang, and healthy ones that look like it (with -timeout 30m)")

func needLong(t *testing.T) {
	t.Helper()
	if needOutlive(t); !*long {
		t.Skip("takes minutes, because verdicts do: run with -long")
	}
}

// sickServer is a server that falls ill on demand.
func sickServer(args ...string) []string {
	return append([]string{tools.python, "-S", "-E", filepath.Join(tools.root, "servers", "sick.py")}, args...)
}

// healthyFor is how long a healthy server is looked at: no verdict of the default settings takes longer on a quiet machine.
const healthyFor = 5 * time.Minute

// healthy is a server that only looks as if it hung, and what it lives through.
type healthy struct {
	name   string
	server []string
	live   func(t *testing.T, c *raw)
}

func healthyServers() []healthy {
	idle := func(*testing.T, *raw) { time.Sleep(healthyFor) } // the time is the point: nothing must happen in it
	return []healthy{
		{"idle", sickServer(), idle},
		{"no ping", sickServer("--no-ping"), idle},
		{"Python SDK", servers()["py"].argv, idle},
		{"TypeScript SDK", servers()["ts"].argv, idle},
		{"Go SDK", servers()["go"].argv, idle},
		{"long call", sickServer("--no-ping"), liveLongCall},
		{"cancelled call", sickServer(), liveCancelledCall},
		{"outlive stopped", sickServer("--no-ping"), liveStoppedOutlive},
		{"slow start", sickServer("--slow-start", "25"), func(*testing.T, *raw) { time.Sleep(time.Minute) }},
	}
}

func liveLongCall(t *testing.T, c *raw) {
	got := c.await(t, c.begin("sleep", map[string]any{"seconds": healthyFor.Seconds()}), healthyFor+patience)
	if got.text() == "" {
		t.Errorf("the call: %s", got)
	}
}

func liveCancelledCall(t *testing.T, c *raw) {
	ch := c.begin("sleep", map[string]any{"seconds": 50})
	begun := func() bool {
		_, err := os.Stat(c.path("working"))
		return err == nil
	}
	if !within(patience, begun) {
		t.Fatal("the server does not begin with the call")
	}
	line := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.Itoa(c.next) + `}}` + "\n"
	if _, err := c.in.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(healthyFor)
	select {
	case <-ch: // a server need not answer what was cancelled, but may
	default:
		c.forget()
	}
}

func liveStoppedOutlive(t *testing.T, c *raw) {
	for range 3 {
		c.signalSelf(t, syscall.SIGSTOP)
		time.Sleep(time.Minute)
		c.signalSelf(t, syscall.SIGCONT)
		time.Sleep(40 * time.Second)
	}
}

// TestHealthySurvive: what only looks like a hang is let be. Nothing here may end a process.
func TestHealthySurvive(t *testing.T) {
	needFull(t, "it judges that nothing is done for minutes")
	needLong(t)
	for _, test := range healthyServers() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			c := startRaw(t, w, w.wrap(test.server))
			if a := c.await(t, c.send("initialize", helloParams), time.Minute); a.Error != nil {
				t.Fatal(a)
			}
			c.initialized(t)
			pid := c.pid(t)
			test.live(t, c)
			if now := c.pid(t); now != pid {
				t.Errorf("process %d was replaced by %d", pid, now)
			}
			for _, kind := range []string{"server_crashed", "server_unhealthy", "restart_initiated", "start_timeout"} {
				if n := w.told(t, kind); n > 0 {
					t.Errorf("%s: told %d times", kind, n)
				}
			}
			c.leave(t)
		})
	}
}

func (c *raw) signalSelf(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(c.cmd.Process.Pid, s); err != nil {
		t.Fatal(err)
	}
}

// TestSickReplaced: what hangs is restarted, or made to go on if that is enough, with nobody calling it.
func TestSickReplaced(t *testing.T) {
	needFull(t, "it judges how soon what hangs is replaced")
	needLong(t)
	for _, test := range []struct {
		name, tool string
		within     time.Duration // of the default settings' own times: see package health
	}{
		// On a busy machine it does not get its core for long enough, and the verdict takes up to 15 minutes.
		{"spinning", "spin", 16 * time.Minute},
		{"not reading", "deaf", 90 * time.Second},
		{"silent", "mute", 90 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			c := connectRaw(t, w, w.wrap(sickServer()))
			pid := c.pid(t)
			waitProbed(t, w) // silence says more of a server that has answered before
			c.call(t, test.tool, nil)
			begin := time.Now()
			if !within(test.within, func() bool { return len(w.starts()) > 1 }) {
				t.Fatalf("still not replaced after %v", test.within)
			}
			t.Logf("replaced after %v: %v", time.Since(begin).Round(time.Second), w.reasons(t))
			if now := c.pid(t); now == pid {
				t.Errorf("it is still process %d", pid)
			}
			if n := w.told(t, "server_unhealthy"); n != 1 {
				t.Errorf("server_unhealthy told %d times", n)
			}
			c.leave(t)
		})
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		w := newWorkspace(t)
		c := connectRaw(t, w, w.wrap(sickServer()))
		pid := c.pid(t)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		got := c.await(t, c.begin("pid", nil), time.Minute)
		t.Logf("went on after %v", time.Since(begin).Round(100*time.Millisecond))
		if got.text() != strconv.Itoa(pid) || len(w.starts()) != 1 {
			t.Errorf("SIGCONT is enough, but: %s, started %v", got, w.starts())
		}
		c.leave(t)
	})
}

// waitProbed waits until an idle server has been asked once, at the default settings.
func waitProbed(t *testing.T, w *workspace) {
	t.Helper()
	time.Sleep(17 * time.Second) // outlive tells nobody that all is well; 15 s is its interval
	if len(w.starts()) != 1 {
		t.Fatal("restarted although nothing was wrong")
	}
}

// reasons are why servers were called unhealthy.
func (w *workspace) reasons(t *testing.T) []string {
	var all []string
	for _, e := range w.audit(t) {
		if e["event_type"] == "server_unhealthy" {
			reason, _ := e["reason"].(string)
			all = append(all, reason)
		}
	}
	return all
}

// TestCallTimeout: a call that makes no progress is answered when its time is over, and a server that hangs over it is
// of no use to the next one.
func TestCallTimeout(t *testing.T) {
	needFull(t, "it judges by the clock: the limit is one second, and the call takes two")
	needOutlive(t)
	w := newWorkspace(t)
	limit := time.Second
	if !full() {
		limit = 4 * time.Second // the next call must be answered within it, too, however busy the machine is
	}
	c := connectRaw(t, w, w.wrap(sickServer(), "--call-timeout", limit.String()))
	begin := time.Now()
	got := c.await(t, c.begin("sleep", map[string]any{"seconds": 1.5 * limit.Seconds()}), patience) // the next call has half of its own time
	took := time.Since(begin)
	inTime(t, "answered", took, limit+900*time.Millisecond)
	if took < limit-100*time.Millisecond {
		t.Errorf("answered after %v, want about %v", took, limit)
	}
	if got.text() != "" || !strings.Contains(got.String(), limit.String()) {
		t.Errorf("answered %s", got)
	}
	c.pid(t)
	if n := len(w.starts()); n != 1 {
		t.Errorf("%d processes: the server was only slow", n)
	}
	c.leave(t)
}
