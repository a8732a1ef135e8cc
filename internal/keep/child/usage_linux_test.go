package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func TestParseStat(t *testing.T) {
	const fields = "S 1 2 3 0 -1 4194560 5 6 7 8 150 50 30 20 20 0 11 0 99 1 2\n"
	want := procStat{state: 'S', parent: 1, group: 2, session: 3, cpu: 2500 * time.Millisecond, threads: 11, born: 99}
	stopped := want
	stopped.state = 'T'
	for _, tc := range []struct {
		name, text string
		want       procStat
		ok         bool
	}{
		{"plain", "12 (node) " + fields, want, true},
		{"parentheses in the name", "12 (a) R (b)) " + fields, want, true},
		{"spaces and a newline in the name", "12 (a \n b) " + fields, want, true},
		{"empty name", "12 () " + fields, want, true},
		{"stopped", "12 (x) T" + fields[1:], stopped, true},
		{"no name", "12 " + fields, procStat{}, false},
		{"cut short", "12 (x) S 1 2 3", procStat{}, false},
		{"state of two letters", "12 (x) S" + fields, procStat{}, false},
		{"a time that is not a number", "12 (x) " + strings.Replace(fields, "150", "1x0", 1), procStat{}, false},
		{"a time beyond any machine", "12 (x) " + strings.Replace(fields, "150", "99999999999999999999", 1), procStat{}, false},
		{"empty", "", procStat{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := parseStat([]byte(tc.text))
			if ok != tc.ok || got != tc.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("node", byte('S'), uint32(1), uint32(2), []byte("1 (x) S 1 2"))
	f.Add("a) R 1 (b", byte('T'), uint32(9), uint32(0), []byte(")("))
	f.Add("(\n) ", byte('Z'), uint32(0), uint32(1<<31), []byte("1 ()"))
	f.Fuzz(func(t *testing.T, name string, state byte, user, system uint32, foreign []byte) {
		if s, ok := parseStat(foreign); ok && (s.cpu < 0 || s.threads < 0) {
			t.Errorf("%q gives %+v", foreign, s)
		}
		if state &= 0x7f; state <= ' ' || state == ')' { // the kernel's are letters
			return
		}
		text := fmt.Sprintf("7 (%s) %c 1 7 7 0 -1 0 0 0 0 0 %d %d 0 0 20 0 3 0 5\n", name, state, user, system)
		want := procStat{state, 1, 7, 7, (time.Duration(user) + time.Duration(system)) * tick, 3, 5}
		if got, ok := parseStat([]byte(text)); !ok || got != want {
			t.Errorf("%q gives %+v, %v, want %+v", text, got, ok, want)
		}
	})
}

// sh starts a shell script that prints "up" when it is ready, in a group of its own. It dies with the test, and so do its descendants.
func sh(t *testing.T, script string) (pid int, stdin io.Writer) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		all := treeOf(t, cmd.Process.Pid) // one may have left the group
		for _, one := range all {
			_ = syscall.Kill(one, syscall.SIGKILL)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		for _, one := range all {
			gone(t, one)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	return cmd.Process.Pid, in
}

// eventually asks again until the answer is right: what a process does after it said "up" takes a moment.
func eventually(t *testing.T, pid int, right func(Usage) bool) Usage {
	t.Helper()
	return await.Value(t, "the usage is right", func() (Usage, bool) {
		u, err := TreeUsage(pid)
		if err != nil {
			t.Fatal(err)
		}
		return u, right(u)
	})
}

func TestTreeUsageCountsDescendants(t *testing.T) {
	pid, _ := sh(t, `sleep 60 & sh -c 'sleep 60 & echo up; wait' & wait`)
	var private, shares, mostShare int64
	u := eventually(t, pid, func(u Usage) bool { // the last of them may still be on its way to its own program
		private, shares, mostShare = 0, 0, 0
		for _, p := range append([]int{pid}, treeOf(t, pid)...) {
			r, s := statmOf(t, p)
			private, shares, mostShare = private+r-s, shares+s, max(mostShare, s)
		}
		return u.Processes == 4 && u.State == 'S' && u.RSS == private+mostShare
	})
	if u.RSS >= private+shares || u.RSS <= mostShare {
		t.Errorf("RSS %d, want less than every share counted, %d, and more than the largest share, %d", u.RSS, private+shares, mostShare)
	}
}

// treeOf finds descendants without TreeUsage's own means: by the parents in status.
func treeOf(t *testing.T, pid int) (all []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		if n, err := strconv.Atoi(e.Name()); err == nil && strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", pid)) {
			all = append(append(all, n), treeOf(t, n)...)
		}
	}
	return all
}

func statmOf(t *testing.T, pid int) (resident, shared int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		t.Fatal(err)
	}
	return resident * pageSize, shared * pageSize
}

// Memory that a descendant touches is seen, whichever process and thread started it.
func TestTreeUsageSeesADescendantsMemory(t *testing.T) {
	const size = 64 << 20
	own, err := TreeUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	pid, stdin := sh(t, fmt.Sprintf(`echo up; read go; (head -c %d /dev/zero | tail -c %d | (sleep 600; cat)) & wait`, size, size))
	before := eventually(t, pid, func(Usage) bool { return true })
	if _, err := io.WriteString(stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, pid, func(u Usage) bool { return u.RSS > before.RSS+size*9/10 })
	// This process has many threads, and the shell is the child of one of them.
	eventually(t, os.Getpid(), func(u Usage) bool { return u.Processes > own.Processes })
}

func TestTreeUsageKeepsTheTimeOfTheDead(t *testing.T) {
	pid, _ := sh(t, `sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo up; read never`)
	if u := eventually(t, pid, func(u Usage) bool { return u.Processes == 1 }); u.CPU < 20*time.Millisecond {
		t.Errorf("the counted child used %v", u.CPU)
	}
}

func TestContinueWakesAStoppedGroup(t *testing.T) {
	pid, _ := sh(t, `sleep 60 & echo up; wait`)
	if err := syscall.Kill(-pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, pid, func(u Usage) bool { return u.State == 'T' && u.Processes == 2 })
	if err := Continue(pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, pid, func(u Usage) bool { return u.State == 'S' })
}

// A job of a terminal that is stopped, in a group of its own, says nothing of its server; a process of the server's own group does.
func TestStoppedJobsAreNotTheServer(t *testing.T) {
	pid, _ := sh(t, `setsid sh -c 'kill -STOP $$' & sleep 60 & echo up; wait`)
	job := await.Value(t, "the job has a group of its own", func() (int, bool) {
		for _, one := range treeOf(t, pid) {
			if group, err := syscall.Getpgid(one); err == nil && group == one && one != pid {
				return one, true
			}
		}
		return 0, false
	})
	t.Cleanup(func() { _ = syscall.Kill(job, syscall.SIGKILL) }) // the end of the group does not reach it
	eventually(t, job, func(u Usage) bool { return u.State == 'T' })
	if u, err := TreeUsage(pid); err != nil || u.State == 'T' {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestUsageOfTheDead(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exit 0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	zombie := eventually(t, pid, func(u Usage) bool { return u.State == 'Z' })
	zombie.CPU = 0 // however long the shell took
	if diff := cmp.Diff(Usage{State: 'Z'}, zombie); diff != "" {
		t.Errorf("a zombie holds no memory (-want +got):\n%s", diff)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := TreeUsage(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("usage of a reaped process: %v", err)
	}
	if err := Continue(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("continue of a reaped process: %v", err)
	}
	for _, pid := range []int{1, 0, -1} {
		if err := Continue(pid); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("continue %d: %v", pid, err)
		}
	}
}

func BenchmarkTreeUsage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := TreeUsage(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
