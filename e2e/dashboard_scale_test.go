package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// A machine as full as the dashboard is meant for, and what is promised there.
const (
	manyServers, manyAgents = 50, 200
	dayOfEvents             = 20000
	firstPaint              = 300.0 // ms
	scriptingOfUpdate       = 50.0  // ms, median
	dashboardMemory         = 60.0  // MB, resident
	callsWithBrowsers       = 1.05  // times what a call takes with no browser
	callPairs               = 12
)

// auditOfADay writes a day of events of the runs: crashes and restarts, all over the day.
func (s *scene) auditOfADay(t *testing.T, pids []int) {
	t.Helper()
	dir := filepath.Join(s.path("state"), "outlive", "audit")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for n, pid := range pids {
		var b strings.Builder
		each := dayOfEvents / len(pids) / 4
		for k := range each {
			at := time.Now().Add(-23*time.Hour - 50*time.Minute + time.Duration(k)*(23*time.Hour)/time.Duration(each) + time.Duration(rnd.IntN(60))*time.Second).UTC()
			line := func(after time.Duration, kind, level, text, more string) {
				fmt.Fprintf(&b, `{"timestamp":%q,"level":%q,"logger":"mcp_proxy","message":%q,"event_type":%q,"proxy_pid":%d,"server_pid":%d,"generation":%d%s}`+"\n",
					at.Add(after).Format("2006-01-02T15:04:05.000Z"), level, text, kind, pid, 100000+k, k, more)
			}
			line(0, "server_crashed", "ERROR", "Server crashed (exit code 137)", "")
			line(time.Millisecond, "restart_initiated", "WARNING", "Restart initiated", `,"cause":"crash","source":"none","reason":"exit 137"`)
			line(80*time.Millisecond, "server_ready", "INFO", "Server ready", "")
			line(81*time.Millisecond, "restart_completed", "INFO", "Restart completed in 80ms", `,"restart_duration_ms":80,"cause":"crash"`)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("day-%d.jsonl", n)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// nightOfAgents is a script that gives a monitor's database a day: every agent had trouble once, something was done, and somebody was
// told of some.
const nightOfAgents = `
import json, sqlite3, sys, time
now = int(time.time() * 1000)
hour = 3600 * 1000
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO watched VALUES (?, ?)", (now - 23 * hour, now))
for n in range(int(sys.argv[2])):
    agent = "a%d" % n
    for k in range(6):
        at = now - 23 * hour + k * 3 * hour + n * 60000
        db.execute("INSERT INTO verdict VALUES (?, ?, ?)", (agent, at, json.dumps({"standing": "well", "class": "working"})))
        db.execute("INSERT INTO verdict VALUES (?, ?, ?)", (agent, at + 2 * hour, json.dumps({"standing": "wrong", "class": "crashed", "details": "PID %d is dead, exit code 1" % n})))
db.commit()
`

// manyAgents starts the agents, and declares them.
func (s *scene) manyAgents(t *testing.T, home string) {
	t.Helper()
	var registry strings.Builder
	registry.WriteString("version: 2\nagents:\n")
	for n := range manyAgents {
		name := fmt.Sprintf("a%d", n)
		dir := s.path(name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		pid := s.start(t, "sh", "-c", "cd "+name+" && exec sleep 900").Process.Pid
		if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&registry, "  %s:\n    kind: command\n    path: %s\n    match: {pidfile: pid}\n", name, dir)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "registry.yaml"), []byte(registry.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.outlive(t, "monitor", "--once", "--home", home)
	cmd := exec.Command(tools.python, "-c", nightOfAgents, filepath.Join(home, "monitor.db"), strconv.Itoa(manyAgents))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the agents' night: %v\n%s", err, out)
	}
}

func middle(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// residentMB is the memory of a process, and cpuSeconds the time of the processor that it has used.
func residentMB(t *testing.T, pid int) (resident, private float64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "Rss:":
			resident = kb / 1024
		case "Private_Clean:", "Private_Dirty:":
			private += kb / 1024
		}
	}
	return resident, private
}

func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // USER_HZ
}

// callsFor makes one call after the other for a while, and returns what each took, in µs.
func callsFor(t *testing.T, c *raw, d time.Duration) (took []float64) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		begun := time.Now()
		c.await(t, c.begin("echo", map[string]any{"text": "x"}), patience)
		took = append(took, float64(time.Since(begun).Nanoseconds())/1000)
	}
	return took
}

// scripting is how long a page has run scripts, in ms, and how many updates it has had with how long each took.
func scripting(t *testing.T, ctx context.Context) (total float64, updates []float64) {
	t.Helper()
	all := seen(t, ctx, chromedp.Action[performance.GetMetricsResult](func(ctx context.Context, target *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
	}))
	for _, m := range all.Metrics {
		if m.Name == "ScriptDuration" {
			total = 1000 * m.Value
		}
	}
	return total, seen(t, ctx, chromedp.Evaluate[[]float64](`performance.getEntriesByName("update").map(e => e.duration)`))
}

// With 50 servers, 200 agents and a day of events the page is there at once, and what is watched does not notice it.
func TestDashboardOfAFullMachine(t *testing.T) {
	needFull(t, "it judges times and processor shares of a full machine")
	needOutlive(t)
	s := &scene{workspace: newWorkspace(t)}
	var servers []*raw
	var pids []int
	for n := range manyServers {
		c := startRaw(t, s.workspace, []string{tools.outlive, "run", "--name", fmt.Sprintf("s%d", n), "--restart-delay", "0", "--", tools.goserver})
		servers, pids = append(servers, c), append(pids, c.cmd.Process.Pid)
	}
	for _, c := range servers {
		c.handshake(t)
	}
	s.auditOfADay(t, pids)
	home := s.path("home")
	s.manyAgents(t, home)
	s.start(t, tools.outlive, "monitor", "--home", home)
	s.openDashboard(t, "--home", home)

	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#agents")))
	if !eventually(func() bool {
		return seen(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("#servers tbody tr").length`)) == manyServers &&
			seen(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("#agents tbody tr").length`)) == manyAgents
	}) {
		t.Fatalf("not all are on the page:\n%.3000s", content(t, ctx))
	}
	address := seen(t, ctx, chromedp.Location())
	var paints []float64
	for range 7 {
		do(t, ctx, chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("#agents")))
		var paint float64
		if !eventually(func() bool {
			paint = seen(t, ctx, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`))
			return paint > 0
		}) {
			t.Fatal("the page is not painted")
		}
		paints = append(paints, paint)
	}
	slices.Sort(paints)
	t.Logf("first paint of the overview: %.0f ms (%.0f), %d bytes", middle(paints), paints, seen(t, ctx, chromedp.Evaluate[int](`document.documentElement.outerHTML.length`)))

	// Something happens all the time: some servers are called, and one is killed every two seconds.
	stop := make(chan struct{})
	happening := make(chan struct{})
	go func() {
		defer close(happening)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			c := servers[1+n%9]
			if n%20 == 0 {
				c.begin("die", map[string]any{})
				continue
			}
			c.begin("echo", map[string]any{"text": "y"})
		}
	}()
	do(t, ctx, tell(performance.Enable, performance.EnableParams{}))
	before, _ := scripting(t, ctx)
	worked, since := cpuSeconds(t, s.dashboard.Process.Pid), time.Now()
	time.Sleep(10 * time.Second) // a measurement, not a wait
	after, updates := scripting(t, ctx)
	spent := cpuSeconds(t, s.dashboard.Process.Pid) - worked
	t.Logf("one browser: %d updates, median %.2f ms, longest %.2f ms; scripts %.1f ms a second; dashboard %.1f %% of a core",
		len(updates), middle(updates), slices.Max(append(updates, 0)), (after-before)/time.Since(since).Seconds(), 100*spent/time.Since(since).Seconds())

	// Three browsers, and none, in turns; the calls are of a server that is left alone.
	tabs := []context.Context{ctx, browser(t), browser(t)}
	do(t, tabs[1], chromedp.Navigate(s.link))
	do(t, tabs[2], chromedp.Navigate(s.link))
	look := func(pages ...string) {
		for n, tab := range tabs {
			do(t, tab, chromedp.Navigate(pages[n]))
		}
	}
	var ratios, with, without []float64
	median := map[bool]float64{} // of a pair: with browsers, without
	lower := func() float64 {
		slices.Sort(ratios)
		return ratios[len(ratios)/4]
	}
	// What else runs on the machine makes single pairs differ by more than what is promised. Three quarters of them above it are no chance, if
	// they are so in twice as many.
	for n := 0; n < 2*callPairs || n < 4*callPairs && (n%2 == 1 || lower() > callsWithBrowsers); n++ {
		open := n%4 == 1 || n%4 == 2 // without, with, with, without: what drifts concerns both
		pages := []string{"about:blank", "about:blank", "about:blank"}
		if open {
			pages = []string{address, address + "events", address + "agent/a7"}
		}
		look(pages...)
		callsFor(t, servers[0], 500*time.Millisecond) // until the pages are there
		median[open] = middle(callsFor(t, servers[0], time.Second))
		if n%2 == 1 {
			ratios, with, without = append(ratios, median[true]/median[false]), append(with, median[true]), append(without, median[false])
		}
	}
	resident, private := residentMB(t, s.dashboard.Process.Pid)
	slices.Sort(ratios)
	t.Logf("a call: %.0f µs without a browser, %.0f µs with three: %.3f × (pairs: %.2f)", middle(without), middle(with), middle(ratios), ratios)
	t.Logf("dashboard: %.1f MB resident, %.1f MB private", resident, private)
	close(stop)
	<-happening

	for _, p := range []struct {
		what     string
		is, most float64
	}{
		{"first paint, lower quartile, ms", paints[len(paints)/4], firstPaint}, // what else runs can only add to it
		{"scripting of an update, ms", middle(updates), scriptingOfUpdate},
		{"memory of the dashboard, MB", resident, dashboardMemory},
		{"a call with three browsers, lower quartile", lower(), callsWithBrowsers},
	} {
		if p.is > p.most {
			t.Errorf("%s: %.2f, and at most %.2f is promised", p.what, p.is, p.most)
		}
	}
	if len(updates) == 0 {
		t.Error("nothing has changed on the page")
	}
	figures, _ := json.Marshal(map[string]any{"first_paint_ms": middle(paints), "update_ms": middle(updates), "resident_mb": resident, "private_mb": private, "call_ratio": middle(ratios)})
	t.Logf("figures: %s", figures)
}
