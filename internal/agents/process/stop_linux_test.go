package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// PIV-9: SIGTERM, 2 s, verify; and everything of it, wherever it has gone.
func TestStopReachesEverything(t *testing.T) {
	for _, tc := range []struct {
		name, actor string
		prepare     func(t *testing.T, pids []int)
		within      time.Duration
	}{
		{"an obedient one", "agent", nil, StopGrace - time.Second/4},
		{"one that ignores SIGTERM", "agent stubborn", nil, StopGrace + killTime + time.Second},
		{"one that is stopped", "agent", func(_ *testing.T, pids []int) { _ = unix.Kill(pids[0], unix.SIGSTOP) }, StopGrace - time.Second/4},
		{"with a child", "agent child", nil, StopGrace + killTime + time.Second},
		{"with one in a session of its own, whose parent is gone", "agent away", nil, StopGrace + killTime + time.Second},
		{"its leader is dead already", "agent child away", func(t *testing.T, pids []int) {
			_ = unix.Kill(pids[0], unix.SIGKILL)
			ended(t, pids[0])
		}, StopGrace + killTime + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pids := agenttest.Start(t, tc.actor, "", RunVariable+"="+t.Name())
			leader := identityOf(pids[0])
			if tc.prepare != nil {
				tc.prepare(t, pids)
			}
			bystander := agenttest.Start(t, "agent", "")
			begin := time.Now()
			err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{leader}, Runs: []string{t.Name()}, LeftBefore: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			tier.Within(t, "the stop", time.Since(begin), tc.within)
			for _, pid := range pids {
				if identityOf(pid) != (Identity{}) {
					t.Errorf("%d of %v is still there", pid, pids)
				}
			}
			if identityOf(bystander[0]) == (Identity{}) {
				t.Error("somebody else is gone, too")
			}
		})
	}
}

// ended waits until a process has ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("process %d has ended", pid), func() bool { return identityOf(pid) == Identity{} })
}

// A process that executes another program has no environment for a moment: it is of its run all the same.
func TestRunOfAProcessThatExecutes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("exec /bin/sh \"$0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", script)
	cmd.Env = append(os.Environ(), RunVariable+"="+t.Name())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for look := range 500 {
		if !isOfRun(cmd.Process.Pid, []string{t.Name()}) {
			t.Fatalf("look %d does not see whose it is", look)
		}
	}
}

// Without a token of ours, what a dead leader has left in its session is found all the same; what came later is not its.
func TestWhatADeadLeaderLeft(t *testing.T) {
	pids := agenttest.Start(t, "agent child", "")
	leader := identityOf(pids[0])
	_ = unix.Kill(pids[0], unix.SIGKILL)
	ended(t, pids[0])
	target := Target{Leaders: []Identity{{PID: leader.PID, Boot: leader.Boot}}, LeftBefore: time.Now().Add(-time.Hour)}
	if err := (System{}).Stop(t.Context(), target); err != nil || identityOf(pids[1]) == (Identity{}) {
		t.Fatalf("younger than its last sign of life: %v", err)
	}
	target.LeftBefore = time.Now()
	if err := (System{}).Stop(t.Context(), target); err != nil || identityOf(pids[1]) != (Identity{}) {
		t.Errorf("its own: %v", err)
	}
}

func TestStopSparesStrangers(t *testing.T) {
	pids := agenttest.Start(t, "agent", "")
	id := identityOf(pids[0])
	id.Start++ // another process had this number
	if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{id}, LeftBefore: time.Now()}); err != nil {
		t.Error(err)
	}
	id.Start--
	id.Boot = "another"
	if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{id}}); err != nil || identityOf(pids[0]) == (Identity{}) {
		t.Errorf("a stranger with a reused number was ended (%v)", err)
	}
	var stop *StopError
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{identityOf(pid)}}); !errors.As(err, &stop) {
			t.Errorf("we were to end ourselves or our parent: %v", err)
		}
	}
}

// An agent that has ended, such as before the machine was booted, is dead also if its number is ours by now, or of one above us.
func TestStopOfADeadOneWithOurNumber(t *testing.T) {
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		earlier, before := identityOf(pid), identityOf(pid)
		earlier.Start--
		before.Boot = "another"
		for _, id := range []Identity{earlier, before, {PID: pid, Boot: BootID()}} {
			if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{id}, LeftBefore: time.Now()}); err != nil {
				t.Errorf("%+v: %v", id, err)
			}
		}
	}
}

// EPERM is not death.
func TestStopOfAProcessThatIsNotOurs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else than the owner of a process")
	}
	pids := agenttest.Start(t, "agent", "")
	binary := filepath.Join(t.TempDir(), "test") // where everybody may run it
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{binary, filepath.Dir(binary), filepath.Dir(filepath.Dir(binary))} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.run=^TestStopAsNobody$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "OUTLIVE_TEST_STRANGER="+strconv.Itoa(pids[0]))
	cmd.SysProcAttr = asNobody
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if identityOf(pids[0]) == (Identity{}) {
		t.Error("it is dead")
	}
}

// TestStopAsNobody is the other half of the test above.
func TestStopAsNobody(t *testing.T) {
	pid := os.Getenv("OUTLIVE_TEST_STRANGER")
	if pid == "" {
		t.Skip("needs to be started by TestStopOfAProcessThatIsNotOurs, as another user")
	}
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	id := identityOf(number)
	var stop *StopError
	err = (System{}).Stop(t.Context(), Target{Leaders: []Identity{id}})
	if !errors.As(err, &stop) || !errors.Is(err, os.ErrPermission) || stop.PID != id.PID {
		t.Errorf("error %v, want one that names the PID", err)
	}
	if id := identityOf(id.PID); id == (Identity{}) {
		t.Error("it looks dead from here")
	}
}

// Without a start time, an identity may be that of whoever has the number next.
func TestIdentityOfOneThatHasEndedAtOnce(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // not before: it is a zombie until then
	pid := cmd.Process.Pid
	var s procStat
	await.Until(t, "it has ended", func() (over bool) {
		s, _ = readStat(pid)
		return s.dead()
	})
	if id := (System{}).Identify(pid); s.start == 0 || id != (Identity{PID: pid, Start: s.start, Boot: BootID()}) {
		t.Errorf("%+v, and it was started at %d", id, s.start)
	}
}

func TestParseStat(t *testing.T) {
	s, ok := parseStat("7 (a) b) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 2678167 31 381")
	if !ok || s.parent != 3 || s.group != 4 || s.session != 5 || s.start != 2678167 || s.dead() {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, bad := range []string{"", "7", "7 (a", "7 (a) S x 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 26 31"} {
		if _, ok := parseStat(bad); ok {
			t.Errorf("%q is taken for one", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (a) b) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 2678167 31 381")
	f.Add(")))")
	f.Fuzz(func(_ *testing.T, s string) { _, _ = parseStat(s) })
}

func TestExits(t *testing.T) {
	before := pidfds(t)
	e := NewExits()
	defer e.Close()
	one, other := agenttest.Start(t, "agent", "")[0], agenttest.Start(t, "agent", "")[0]
	gone := identityOf(one)
	gone.Start++ // has ended long ago
	e.Watch([]Identity{identityOf(one), identityOf(other), gone})
	<-e.C // of the one that was gone already
	_ = unix.Kill(one, unix.SIGKILL)
	<-e.C
	if identityOf(one) != (Identity{}) {
		t.Error("told of an end that has not come")
	}
	e.Watch([]Identity{identityOf(other)})
	_ = unix.Kill(other, unix.SIGKILL)
	<-e.C
	select {
	case <-e.C:
		t.Error("told twice")
	default:
	}
	await.Until(t, "no pidfd of who has ended is left", func() bool { return pidfds(t) <= before })
}

// pidfds is how many of our descriptors are pidfds.
func pidfds(t *testing.T) (count int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.Contains(to, "pidfd") {
			count++
		}
	}
	return count
}

// A Close that came just after an event was not seen: a monitor that was ended as its agent ended went on for ever.
func TestExitsCloseAfterAnEvent(t *testing.T) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		us := identityOf(os.Getpid())
		for range 20_000 {
			e := NewExits()
			e.Watch([]Identity{us})
			looked := make(chan struct{})
			go func() { // a look that is under way
				defer close(looked)
				e.Watch([]Identity{us})
			}()
			e.Close()
			<-looked
		}
	}()
	select {
	case <-closed:
	case <-time.After(tier.Limit(20 * time.Second)):
		t.Fatal("Close does not return")
	}
}

func TestTable(t *testing.T) {
	pids := agenttest.Start(t, "agent child", t.TempDir())
	all := System{}.All()
	tree := TableOf(all).Tree(pids[0])
	if len(tree) != 2 || tree[0].Identity != identityOf(pids[0]) || tree[1].PID != pids[1] {
		t.Errorf("tree %+v, want %v", tree, pids)
	}
	if args := (System{}).Args(pids[0]); len(args) == 0 || args[0] != os.Args[0] {
		t.Errorf("args %q", args)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if files := (System{}).Files(os.Getpid()); !slices.Contains(files, f.Name()) {
		t.Errorf("files %q", files)
	}
	if err := (System{}).Interrupt(identityOf(pids[0])); err != nil {
		t.Error(err)
	}
	ended(t, pids[0]) // a Go program ends of it
	if err := (System{}).Interrupt(Identity{PID: pids[0], Boot: BootID()}); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("error %v", err)
	}
}

// The table tells who was stopped by job control, as long as it is.
func TestTableTellsTheStopped(t *testing.T) {
	t.Parallel()
	pid := agenttest.Start(t, "agent", "")[0]
	for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
		if err := unix.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		await.Until(t, fmt.Sprintf("the table shows what %v has done", signal), func() bool {
			return slices.ContainsFunc(System{}.All(), func(e Process) bool { return e.PID == pid && e.Stopped == (signal == unix.SIGSTOP) })
		})
	}
}
