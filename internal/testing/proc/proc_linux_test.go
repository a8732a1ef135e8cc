package proc

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// A living process is read, and one that has ended is neither alive nor has figures.
func TestLivingAndEnded(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	stat, alive := StatOf(pid)
	if !alive || stat.Parent != os.Getpid() || stat.Born == "" || !slices.Contains(Children(os.Getpid()), pid) || !slices.Contains(All(), pid) {
		t.Errorf("a child is read as %+v, alive %v, among %v", stat, alive, Children(os.Getpid()))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if _, alive := StatOf(pid); alive || slices.Contains(Descendants(os.Getpid()), pid) || !math.IsNaN(MemoryOf(pid).PSS) || Argv(pid) != nil {
		t.Errorf("a process that has ended is read")
	}
}

func TestOwnFigures(t *testing.T) {
	m := MemoryOf(os.Getpid())
	if !(m.Dirty > 0) || !(m.PSS >= m.Dirty) || !(m.Resident >= m.PSS) {
		t.Errorf("memory %+v", m)
	}
	if now := ResetPeak(os.Getpid()); !(now > 0) || !(Peak(os.Getpid()) > 0) {
		t.Errorf("resident %v, at most %v", now, Peak(os.Getpid()))
	}
	if files, threads, err := Counts(os.Getpid()); err != nil || files < 3 || threads < 1 {
		t.Errorf("%d descriptors, %d threads, %v", files, threads, err)
	}
	if got := Argv(os.Getpid()); !slices.Equal(got, os.Args) || !Has(os.Getpid(), "PATH=") {
		t.Errorf("arguments %q", got)
	}
}
