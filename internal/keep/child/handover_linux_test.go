package child

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAHeldEndWaits: while a process is held its end is not noticed, however long it is dead; afterwards it is, once.
func TestAHeldEndWaits(t *testing.T) {
	p := start(t, "ignore-term")
	release, ok := p.Hold()
	if !ok {
		t.Fatal("a living process cannot be held")
	}
	if s := p.Save(); s.PID != p.PID() || s.Files[0] < 0 || s.Files[1] < 0 || s.Files[2] < 0 {
		t.Errorf("saved %+v", s)
	}
	if err := unix.Kill(p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead(t, p)
	select {
	case s := <-p.exited:
		t.Fatalf("its end was noticed: %+v", s)
	default:
	}
	release()
	if s := p.wait(t); !s.Signalled || s.Code != 137 {
		t.Errorf("status %+v", s)
	}
	if _, ok := p.Hold(); ok {
		t.Error("a dead process can be held")
	}
}

// dead waits until p is dead and that is there to be noticed: the keeper's report, or a process that is not reaped.
func dead(t *testing.T, p *running) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if k := p.tree.kept; k != nil {
			if n, err := unix.IoctlGetInt(descriptor(k.channel), unix.TIOCINQ); err == nil && n > 0 {
				return
			}
		} else if fields := statFields(p.PID()); len(fields) > 0 && fields[0] == "Z" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it does not die, or its end was taken note of")
		}
	}
}
