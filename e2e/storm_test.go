package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killAgain is how soon the same process may be killed again. With the default settings the first crash after a healthy
// minute is restarted at once, and more than ten crashes within ten minutes open the breaker, which answers calls with an
// error. At this pace, nine in ten minutes, neither a delay nor the breaker comes in between, so every error is one.
const killAgain = 70 * time.Second

// stormTime is how long TestRunStorm and TestGatewayStorm last: E2E_STORM, such as E2E_STORM=20m, else 20 s, and 2 min with
// -long. Two storms of 20 minutes:
//
//	E2E_STORM=20m e2e/run.sh -run 'TestRunStorm|TestGatewayStorm' -timeout 60m
func stormTime(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("E2E_STORM"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("E2E_STORM=%q: want a time such as 20m", text)
		}
		return d
	}
	if *long {
		return 2 * time.Minute
	}
	return 20 * time.Second
}

// storm has all callers call for so long and kills a server each second, if there is one that may be killed again. line
// names the process that serves a client at a backend; meanwhile is done each second as well. It returns how long the next
// call after each kill took.
func storm(t *testing.T, callers []*caller, lasts time.Duration, line func(client, backend int) string, meanwhile func()) (gaps []time.Duration) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	chance := seeded(t, "storm")
	for _, c := range callers {
		own := seeded(t, fmt.Sprint("caller ", c.number))
		wg.Go(func() { c.run(stop, own) })
	}
	struck := map[string]time.Time{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < lasts; <-tick.C {
		meanwhile()
		for range 20 { // chances to find one
			c := callers[chance.IntN(len(callers))]
			backend := chance.IntN(c.backends)
			at := line(c.number, backend)
			if last, before := struck[at]; !before || time.Since(last) >= killAgain {
				struck[at] = time.Now()
				gaps = append(gaps, c.strike(t, backend))
				break
			}
		}
	}
	close(stop)
	wg.Wait()
	return gaps
}

// stormRuns is how many outlives TestRunStorm has, each with a client of its own.
const stormRuns = 8

// TestRunStorm: eight clients, each behind an outlive run with default settings. Their servers are killed, and replaced by
// SIGHUP, while all of them call. No client sees an error but the unknown outcome of a call that was running and may not
// be repeated; each answer has the text and the id of its call; nothing runs twice; nothing is left behind, dead processes
// included. E2E_STORM says how long, see stormTime.
func TestRunStorm(t *testing.T) {
	needOutlive(t)
	lasts := stormTime(t)
	w := newWorkspace(t)
	orphansAreOurs(t)
	srv := servers()["go"]
	var callers []*caller
	for i := range stormRuns {
		argv := append([]string{tools.outlive, "run", "--name", fmt.Sprint("storm", i), "--"}, srv.argv...)
		s := w.join(t, clients()[[]string{"go", "go-legacy"}[i%2]], argv...)
		if names := s.toolNames(t); !slices.Contains(names, "bump") { // from here on outlive knows what may be repeated
			t.Fatalf("client %d: tools are %v", i, names)
		}
		callers = append(callers, &caller{session: s, number: i, backends: 1})
	}
	replaced, chance := 0, seeded(t, "replaced")
	gaps := storm(t, callers, lasts, func(client, _ int) string { return fmt.Sprint(client) }, func() {
		name := fmt.Sprint("--name storm", chance.IntN(stormRuns), " ")
		for pid, line := range w.processes(name) {
			if strings.HasPrefix(line, tools.outlive+" run ") && syscall.Kill(pid, syscall.SIGHUP) == nil {
				replaced++
			}
		}
	})
	t.Logf("%d planned restarts asked for", replaced)
	if replaced < len(gaps)/2 {
		t.Errorf("only %d planned restarts", replaced)
	}
	reportStorm(t, w, callers, gaps, 0)
	for _, c := range callers {
		c.depart(t)
	}
	w.noneLeft(t)
	noZombies(t)
}

// orphansAreOurs makes this process the parent of all that is left over, as the first process of a container is, until the
// test ends.
func orphansAreOurs(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
}

// noZombies fails the test if this process has a dead child: whoever was started here is reaped by now, so it is an orphan
// of those.
func noZombies(t *testing.T) {
	t.Helper()
	var dead []string
	look := func() bool {
		dead = nil
		tasks, _ := filepath.Glob("/proc/self/task/*/children")
		for _, task := range tasks {
			text, _ := os.ReadFile(task) // a thread may have ended
			for _, pid := range strings.Fields(string(text)) {
				stat, _ := os.ReadFile("/proc/" + pid + "/stat")
				if name, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "Z") {
					dead = append(dead, name+") <defunct>")
				}
			}
		}
		return len(dead) == 0
	}
	if !within(3*time.Second, look) { // whoever waits for a child that has just ended
		t.Errorf("left over: %s", strings.Join(dead, ", "))
	}
}
