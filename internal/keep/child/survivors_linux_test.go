package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// startVictim starts a victim here and waits until all of it runs.
func startVictim(t *testing.T, kind, token string, mode KillMode) *running {
	t.Helper()
	exited := make(chan Status, 2)
	p, err := Start(Spec{Argv: []string{os.Args[0], kind, token}, Env: withMode("victim"), KillMode: mode},
		func(s Status) { exited <- s })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		closeAll(p.ours)
	})
	r := &running{p, exited, bufio.NewReader(p.Stdout())}
	if got := r.line(t); got != "up" {
		t.Fatalf("victim says %q", got)
	}
	return r
}

// When onExit is called nobody is left, however the leader went and whatever its descendants did to get away.
func TestNobodySurvivesTheServer(t *testing.T) {
	for _, kind := range victims {
		for _, killer := range []string{"exit", "crash", "kill"} {
			t.Run(kind+"/"+killer, func(t *testing.T) {
				token := newToken(t)
				r := startVictim(t, kind, token, KillTree)
				before := len(survivors(token))
				began := time.Now()
				if killer == "kill" {
					_ = r.Kill()
				} else {
					_, _ = io.WriteString(r.Stdin(), killer+"\n")
				}
				r.wait(t)
				took := time.Since(began)
				if left := survivors(token); len(left) > 0 {
					t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
				}
				t.Logf("cell %s/%s: %d processes, gone after %v", kind, killer, before, took.Round(10*time.Microsecond))
			})
		}
	}
}

// outlive is another process that supervises victims, for being killed.
type outlive struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	keeper int
}

func startOutlive(t *testing.T, token string, mode KillMode, kinds ...string) *outlive {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{token, string(mode)}, kinds...)...)
	cmd.Env = withMode("supervisor")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	o := &outlive{cmd: cmd, out: bufio.NewReader(out)}
	line := o.line(t)
	if _, err := fmt.Sscanf(line, "keeper %d", &o.keeper); err != nil || o.keeper == 0 {
		t.Fatalf("the supervisor says %q", line)
	}
	return o
}

func (o *outlive) line(t *testing.T) string {
	t.Helper()
	line, err := o.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the supervisor says %q and ends: %v", line, err)
	}
	return strings.TrimSpace(line)
}

func TestNobodySurvivesOutlive(t *testing.T) {
	for _, kind := range victims {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t)
			o := startOutlive(t, token, KillTree, kind)
			_ = o.cmd.Process.Kill()
			took := noSurvivors(t, token, 5*time.Second)
			t.Logf("cell %s/outlive killed: gone after %v", kind, took.Round(100*time.Microsecond))
		})
	}
}

func TestNobodySurvivesTheKeeper(t *testing.T) {
	for _, kind := range victims {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t)
			o := startOutlive(t, token, KillTree, kind)
			began := time.Now()
			_ = unix.Kill(o.keeper, unix.SIGKILL)
			if got := o.line(t); got != "end 137 killed" {
				t.Errorf("reported: %q", got)
			}
			took := time.Since(began)
			// The supervisor itself has the token, too.
			if left := survivors(token); len(left) != 1 {
				t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
			}
			t.Logf("cell %s/keeper killed: gone and reported after %v", kind, took.Round(10*time.Microsecond))
		})
	}
}

func TestNobodySurvivesTheSweep(t *testing.T) {
	for range 10 {
		if sweepOnce(t) {
			return
		}
	}
	t.Error("whenever there was something to be swept, it was gone before")
}

// sweepOnce kills an outlive with its keeper and sweeps what is left. It reports false if that was not all it should have
// been: another outlive that starts on this machine, such as another package's test, sweeps too.
func sweepOnce(t *testing.T) (complete bool) {
	token := newToken(t)
	o := startOutlive(t, token, KillTree, victims...)
	pid := o.cmd.Process.Pid
	of := func(b tag) bool { return b.pid() == pid }
	if early, err := straysOf(of); err != nil || len(early) > 0 {
		t.Fatalf("strays of a living outlive: %v, %v", early, err)
	}
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} { // neither acts after the other's death
		_ = unix.Kill(o.keeper, sig)
		_ = unix.Kill(pid, sig)
	}
	_ = o.cmd.Wait()
	time.Sleep(5 * time.Millisecond) // what Pdeathsig reaches is gone
	complete = true
	for _, kind := range victims {
		left := len(survivors(token + kind + "."))
		t.Logf("cell %s/both killed: %d left before the sweep", kind, left)
		complete = complete && left > 0
	}
	began := time.Now()
	report, err := sweepStrays(context.Background(), of)
	if err != nil || len(report.Left) > 0 {
		t.Errorf("%v, %v", report, err)
	}
	t.Logf("%v, after %v", report, time.Since(began).Round(time.Millisecond))
	if left := survivors(token); len(left) > 0 {
		t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
	}
	return complete
}

// One keeper serves several servers, and knows whose orphan is whose.
func TestAServersEndLeavesTheOthersAlone(t *testing.T) {
	for _, kind := range []string{"daemon", "clobbered-daemon"} {
		t.Run(kind, func(t *testing.T) {
			mine, other := newToken(t), newToken(t)
			a, b := startVictim(t, kind, mine, KillTree), startVictim(t, kind, other, KillTree)
			before := survivors(other)
			_ = a.Kill()
			a.wait(t)
			if left := survivors(mine); len(left) > 0 {
				t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
			}
			if after := survivors(other); len(after) != len(before) || len(after) != 2 {
				t.Errorf("of the other server there were %q and now there are %q", before, after)
			}
			_ = b.Kill()
			b.wait(t)
			if left := survivors(other); len(left) > 0 {
				t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

// A server that starts daemons on purpose keeps them: after its own end, after outlive's, and at the next sweep.
func TestKillGroupSparesDaemons(t *testing.T) {
	for _, kind := range []string{"daemon", "clobbered-daemon"} {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t)
			r := startVictim(t, kind, token, KillGroup)
			_ = r.Kill()
			r.wait(t)
			if left := survivors(token); len(left) != 1 {
				t.Errorf("after its end: %q", left)
			}

			token = newToken(t)
			o := startOutlive(t, token, KillGroup, kind)
			_ = o.cmd.Process.Kill()
			_ = o.cmd.Wait()
			gone(t, o.keeper)
			if left := survivors(token); len(left) != 1 {
				t.Errorf("after outlive's end: %q", left)
			}
			pid := o.cmd.Process.Pid
			if strays, err := straysOf(func(b tag) bool { return b.pid() == pid }); err != nil || len(strays) > 0 {
				t.Errorf("strays %v, %v", strays, err)
			}
		})
	}
	t.Run("group", func(t *testing.T) {
		token := newToken(t)
		r := startVictim(t, "group", token, KillGroup)
		_ = r.Kill()
		r.wait(t)
		noSurvivors(t, token, 5*time.Second)
	})
}

// Where no keeper can be started processes are started all the same.
func TestStartWithoutKeeper(t *testing.T) {
	EndKeeper() // no keeper is started after it
	defer RestKeeper()
	r := start(t, "exit", "3")
	if r.tree.kept != nil {
		t.Error("there is a keeper")
	}
	if s := r.wait(t); s.Code != 3 {
		t.Errorf("status %+v", s)
	}
}

// Kernels before 6.9 know no signal to the group of a pidfd.
func TestTheKeeperSignalsForUs(t *testing.T) {
	r := start(t, "term")
	r.line(t)
	if err := r.tree.kept.askKeeper(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := r.wait(t); s.Code != 7 {
		t.Errorf("status %+v", s)
	}
}

func TestTheKeeperDoesNotGrow(t *testing.T) {
	run := func(n int) (slowest time.Duration) {
		for range n {
			exited, begun := make(chan Status, 1), time.Now()
			p, err := Start(Spec{Argv: []string{"/bin/true"}}, func(s Status) { exited <- s })
			if err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(begun))
			<-exited
			closeAll(p.ours)
		}
		return slowest
	}
	count := func(what string) int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", keeperPID(), what))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	run(20)
	pid, fds, threads := keeperPID(), count("fd"), count("task")
	if slowest := run(manyStarts); keeperPID() != pid {
		t.Fatalf("keeper %d, before %d; the slowest start took %v, and a keeper has %v to answer", keeperPID(), pid, slowest, answerTime)
	}
	if n := count("fd"); n > fds+4 { // those of a process whose exit is just being reported come and go
		t.Errorf("descriptors: %d before, %d after", fds, n)
	}
	if n := count("task"); n > threads+3 {
		t.Errorf("threads: %d before, %d after", threads, n)
	}
}

// A keeper that is killed between two starts is replaced.
func TestTheNextStartReplacesTheKeeper(t *testing.T) {
	start(t, "exit", "0").wait(t)
	first := keeperPID()
	if err := proc.Kill(first); err != nil { // 0: there is no keeper
		t.Fatal(err)
	}
	gone(t, first)
	r := start(t, "exit", "4")
	if r.tree.kept == nil || keeperPID() == first || parentOf(keeperPID()) != os.Getpid() {
		t.Errorf("keeper %d, before %d", keeperPID(), first)
	}
	if s := r.wait(t); s.Code != 4 {
		t.Errorf("status %+v", s)
	}
}

// A keeper that is killed after it has started a server and before it says so is replaced, and the server starts anew: nothing
// is left of the first one.
func TestNobodySurvivesAStartThatWasNotTold(t *testing.T) {
	token := newToken(t)
	// The first server kills the keeper. The mark tells the second one that it is not the first.
	script := `set -C; if true >"$MARK"; then setsid sh -c 'sleep 1000; :' $TOKEN & kill -9 $PPID; sleep 1001; fi 2>/dev/null; echo up; read -r l`
	for try := range 50 {
		start(t, "exit", "0").wait(t)
		runsLast(t, keeperPID())
		exited := make(chan Status, 1)
		env := append(os.Environ(), "MARK="+t.TempDir()+"/mark", "TOKEN="+token)
		p, err := Start(Spec{Argv: []string{"sh", "-c", script}, Env: env}, func(s Status) { exited <- s })
		if err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
		again := line == "up\n" // else the keeper had said so before it was killed, and this is an ordinary end
		if !again {
			<-exited
		}
		noSurvivors(t, token, time.Second)
		_ = p.Kill()
		if again {
			<-exited
		}
		closeAll(p.ours)
		if again {
			t.Logf("at try %d the keeper was killed in time", try+1)
			return
		}
	}
	t.Skip("the keeper always told of the start before the server could kill it")
}

// runsLast lets a process run only while nothing else wants its processor; those that it starts run as usual.
func runsLast(t *testing.T, pid int) {
	t.Helper()
	var one unix.CPUSet
	one.Set(0)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	for _, task := range tasks {
		thread, _ := strconv.Atoi(task.Name())
		err = errors.Join(err, unix.SchedSetaffinity(thread, &one), unix.SchedSetAttr(thread, &attr, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a process gets does not depend on who starts it.
func TestKeptProcessHasOurDirectoryAndItsEnvironment(t *testing.T) {
	Prepare()
	dir := t.TempDir()
	t.Chdir(dir)
	large := strings.Repeat("x", 100<<10)
	exited := make(chan Status, 1)
	env := []string{"PATH=" + os.Getenv("PATH"), cookieVar + "=of an outer outlive"}
	for i := range 12 { // more than any datagram takes
		env = append(env, "LARGE"+strconv.Itoa(i)+"="+large)
	}
	p, err := Start(Spec{Argv: []string{"sh", "-c", `pwd; echo ${#LARGE11}; env | grep -c ` + cookieVar + `; echo $` + cookieVar}, Env: env},
		func(s Status) { exited <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(p.ours)
	out, err := io.ReadAll(p.Stdout())
	<-exited
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 4 || lines[0] != dir || lines[1] != strconv.Itoa(len(large)) || lines[2] != "1" {
		t.Fatalf("%q, %v", out, err)
	}
	if b := parseCookie(lines[3]); b.instance() != ownTag().instance() || b.pid() != os.Getpid() {
		t.Errorf("cookie %q", lines[3])
	}
}
