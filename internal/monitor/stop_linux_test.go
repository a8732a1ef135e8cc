package monitor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// S4: SIGTERM, 2 s, verify; and everything of it, wherever it has gone.
func TestStopReachesEverything(t *testing.T) {
	for _, tc := range []struct {
		name, actor string
		prepare     func(pids []int)
		within      time.Duration
	}{
		{"an obedient one", "agent", nil, stopGrace - time.Second/4},
		{"one that ignores SIGTERM", "agent stubborn", nil, stopGrace + killTime + time.Second},
		{"one that is stopped", "agent", func(pids []int) { _ = unix.Kill(pids[0], unix.SIGSTOP) }, stopGrace - time.Second/4},
		{"with a child", "agent child", nil, stopGrace + killTime + time.Second},
		{"with one in a session of its own, whose parent is gone", "agent away", nil, stopGrace + killTime + time.Second},
		{"its leader is dead already", "agent child away", func(pids []int) {
			_ = unix.Kill(pids[0], unix.SIGKILL)
			for identityOf(pids[0]) != (Identity{}) {
				time.Sleep(time.Millisecond)
			}
		}, stopGrace + killTime + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pids := agent(t, tc.actor, "", runVariable+"="+t.Name())
			leader := identityOf(pids[0])
			if tc.prepare != nil {
				tc.prepare(pids)
			}
			bystander := agent(t, "agent", "")
			begin := time.Now()
			err := system{}.Stop(t.Context(), Target{Leaders: []Identity{leader}, Runs: []string{t.Name()}, LeftBefore: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > tc.within {
				t.Errorf("it took %v", took)
			}
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

// Without a token of ours, what a dead leader has left in its session is found all the same; what came later is not its.
func TestWhatADeadLeaderLeft(t *testing.T) {
	pids := agent(t, "agent child", "")
	leader := identityOf(pids[0])
	_ = unix.Kill(pids[0], unix.SIGKILL)
	for identityOf(pids[0]) != (Identity{}) {
		time.Sleep(time.Millisecond)
	}
	target := Target{Leaders: []Identity{{PID: leader.PID, Boot: leader.Boot}}, LeftBefore: time.Now().Add(-time.Hour)}
	if err := (system{}).Stop(t.Context(), target); err != nil || identityOf(pids[1]) == (Identity{}) {
		t.Fatalf("younger than its last sign of life: %v", err)
	}
	target.LeftBefore = time.Now()
	if err := (system{}).Stop(t.Context(), target); err != nil || identityOf(pids[1]) != (Identity{}) {
		t.Errorf("its own: %v", err)
	}
}

func TestStopSparesStrangers(t *testing.T) {
	pids := agent(t, "agent", "")
	id := identityOf(pids[0])
	id.Start++ // another process had this number
	if err := (system{}).Stop(t.Context(), Target{Leaders: []Identity{id}, LeftBefore: time.Now()}); err != nil {
		t.Error(err)
	}
	id.Start--
	id.Boot = "another"
	if err := (system{}).Stop(t.Context(), Target{Leaders: []Identity{id}}); err != nil || identityOf(pids[0]) == (Identity{}) {
		t.Errorf("a stranger with a reused number was ended (%v)", err)
	}
	var stop *StopError
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		if err := (system{}).Stop(t.Context(), Target{Leaders: []Identity{identityOf(pid)}}); !errors.As(err, &stop) {
			t.Errorf("we were to end ourselves or our parent: %v", err)
		}
	}
}

// EPERM is not death.
func TestStopOfAProcessThatIsNotOurs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else than the owner of a process")
	}
	pids := agent(t, "agent", "")
	binary := filepath.Join(t.TempDir(), "test") // where everybody may run it
	if err := copyFile(os.Args[0], binary); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{binary, filepath.Dir(binary), filepath.Dir(filepath.Dir(binary))} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.run=^TestStopAsNobody$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "OUTLIVE_TEST_STRANGER="+itoa(pids[0]))
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
	id := identityOf(atoi(t, pid))
	var stop *StopError
	err := system{}.Stop(t.Context(), Target{Leaders: []Identity{id}})
	if !errors.As(err, &stop) || !errors.Is(err, os.ErrPermission) || stop.PID != id.PID {
		t.Errorf("error %v, want one that names the PID", err)
	}
	if id := identityOf(id.PID); id == (Identity{}) {
		t.Error("it looks dead from here")
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

func FuzzParseSession(f *testing.F) {
	f.Add([]byte(`{"pid":1002,"cwd":"/x","procStart":"1","status":"waiting","waitingFor":"permission prompt"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseSession(b); ok && (s.PID <= 0 || s.Dir == "" || s.sign().Text == "") {
			t.Errorf("%+v", s)
		}
	})
}
