package process

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const modeVariable = "PROCESS_TEST"

// The test binary is also a process with a child, and one that sleeps.
func TestMain(m *testing.M) {
	switch os.Getenv(modeVariable) {
	case "parent":
		child := inMode("sleeper")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
		time.Sleep(time.Minute)
	case "sleeper":
		time.Sleep(time.Minute)
	default:
		os.Exit(m.Run())
	}
}

func inMode(mode string) *exec.Cmd {
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, modeVariable+"=") }), modeVariable+"="+mode)
	return cmd
}

// family starts a process and its child.
func family(t *testing.T) (parent, child Process) {
	t.Helper()
	cmd := inMode("parent")
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if parent, err = (System{}).Look(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if child, err = (System{}).Look(pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = send(child.Identity, syscall.SIGKILL) })
	return parent, child
}

func alive(id Identity) bool {
	p, err := System{}.Look(id.PID)
	return err == nil && p.Identity == id
}

func TestStopEndsTheTree(t *testing.T) {
	parent, child := family(t)
	if parent.Start == 0 || child.Start < parent.Start || parent.Age < 0 || parent.Age > time.Minute {
		t.Errorf("%+v, %+v", parent, child)
	}
	if err := (System{}).Stop(context.Background(), Target{Leaders: []Identity{parent.Identity}}); err != nil {
		t.Fatal(err)
	}
	if alive(parent.Identity) || alive(child.Identity) {
		t.Error("something still runs")
	}
	if _, err := (System{}).Look(parent.PID); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("look at a dead one: %v", err)
	}
}

// A process that has the number of the one to be stopped, but was started at another time, is a stranger, and so are its children.
func TestStopSparesStrangers(t *testing.T) {
	parent, child := family(t)
	before := parent.Identity
	before.Start--
	if err := (System{}).Stop(context.Background(), Target{Leaders: []Identity{before}}); err != nil {
		t.Fatal(err)
	}
	if err := send(before, syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if !alive(parent.Identity) || !alive(child.Identity) {
		t.Error("a stranger was ended")
	}
}

// The child of an earlier process with our leader's number is older than our leader.
func TestMembersAreNotOlder(t *testing.T) {
	parent, child := family(t)
	all := System{}.All()
	for i := range all {
		if all[i].PID == child.PID {
			all[i].Start = parent.Start - 1
		}
	}
	h := newTermination(Target{Leaders: []Identity{parent.Identity}}, all)
	if got := h.members(all); len(got) != 1 || got[0].Identity != parent.Identity {
		t.Errorf("%v, want the parent %v alone", got, parent.Identity)
	}
}

func TestStopDoesNotEndOurselves(t *testing.T) {
	self, err := System{}.Look(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := (System{}).Stop(context.Background(), Target{Leaders: []Identity{self.Identity}}); !errors.Is(err, errOurselves) {
		t.Errorf("%v", err)
	}
}

// A look at one process tells of it what the table of all does.
func TestLookIsLikeTheTable(t *testing.T) {
	parent, child := family(t)
	for _, p := range (System{}).All() {
		if p.PID == child.PID && (p.Parent != parent.PID || child.Parent != parent.PID || !strings.EqualFold(p.Program, child.Program)) {
			t.Errorf("the table has %+v, a look %+v", p, child)
		}
	}
}
