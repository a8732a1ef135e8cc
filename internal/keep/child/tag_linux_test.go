package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func TestTagHoldsWhatItIsMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space, birth := rapid.Uint64().Draw(t, "space"), rapid.Uint64().Draw(t, "birth")
		pid := rapid.IntRange(1, 1<<pidBits-1).Draw(t, "pid")
		slot := rapid.IntRange(0, keeperSlot).Draw(t, "slot")
		b := makeTag(space, pid, birth).with(slot)
		if !b.valid() || b.pid() != pid || b.slot() != slot || b.space() != fold(space, spaceBits) ||
			b.instance() != makeTag(space, pid, birth) {
			t.Fatalf("%x: pid %d slot %d", uint64(b), b.pid(), b.slot())
		}
		if got := parseCookie(b.cookie()); got != b {
			t.Fatalf("cookie %s reads as %x, not %x", b.cookie(), uint64(got), uint64(b))
		}
	})
}

func FuzzParseCookie(f *testing.F) {
	f.Add(makeTag(1, 2, 3).with(4).cookie())
	f.Add("13c0000000000000:1024")
	f.Add(":")
	f.Fuzz(func(t *testing.T, s string) {
		if b := parseCookie(s); b != 0 && (!b.valid() || parseCookie(b.cookie()) != b) {
			t.Errorf("%q reads as %x", s, uint64(b))
		}
	})
}

// An outlive is alive until it is dead, reaped or not; and another process with its pid is not it.
func TestLiving(t *testing.T) {
	if !ownTag().living() {
		t.Error("we do not live")
	}
	if makeTag(0, os.Getpid(), 12345).living() {
		t.Error("somebody else with our pid lives")
	}
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	birth, err := birthOf(pid, fd)
	if err != nil {
		t.Fatal(err)
	}
	b := makeTag(0, pid, birth)
	if !b.living() {
		t.Error("it lives")
	}
	_ = in.Close()
	new(tree).waitExit(cmd.Process)
	if b.living() {
		t.Error("it is dead, though not reaped")
	}
	_ = cmd.Wait()
	if b.living() {
		t.Error("it is reaped")
	}
}

// What nobody can shed: a cleared environment and a new session leave the tag where it is, and reading it needs
// no more than the pid.
func TestTagIsInherited(t *testing.T) {
	token := newToken(t)
	r := startVictim(t, "clobbered-daemon", token, KillTree)
	want := ownTag().with(r.tree.kept.slot)
	found := 0
	for _, line := range survivors(token) {
		var pid int
		for i := 0; line[i] != ' '; i++ {
			pid = 10*pid + int(line[i]-'0')
		}
		found++
		if got := limitTag(pid); got != want {
			t.Errorf("%s has %x, want %x", line, uint64(got), uint64(want))
		}
		if got := newProcReader().environTag(pid); pid != r.PID() && got != 0 {
			t.Errorf("%s shows %x: its environment is not clear, so nothing is tested", line, uint64(got))
		}
	}
	if found != 2 {
		t.Errorf("%d processes", found)
	}
}

// Every outlive looks at all processes when it starts, and keeps what that has allocated as long as it runs.
func TestALookAtAllProcessesTakesLittleMemory(t *testing.T) {
	l, err := newLookout(func(tag) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 10 // an environment would take eight times as much
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := l.look(func(int, tag) {}); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if got > int64(most*len(entries)+64<<10) {
		t.Errorf("%d bytes for %d processes", got, len(entries))
	}
}

// A process that forks and dies constantly is among the newest, also right after the kernel has begun with low numbers again.
func TestTheNewestAreLookedAtFirst(t *testing.T) {
	for newest, want := range map[int][]int{
		0:     {32000, 30000, 955, 1},
		955:   {955, 1, 32000, 30000},
		31000: {30000, 955, 1, 32000},
		32000: {32000, 30000, 955, 1},
	} {
		if got := newestFirst([]int{955, 32000, 1, 30000}, newest); !slices.Equal(got, want) {
			t.Errorf("newest %d: %v, want %v", newest, got, want)
		}
	}
	if newestPID() <= 0 {
		t.Error("the kernel does not tell the newest process")
	}
}
