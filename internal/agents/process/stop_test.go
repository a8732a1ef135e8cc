package process

import (
	"os"
	"slices"
	"testing"
	"time"
)

// What a leader has left in its group belongs to it, also when it has ended. Who was seen once stays a member, and what it
// starts is one, too.
func TestMembersOfATarget(t *testing.T) {
	const base = 1 << 30 // no system gives such numbers
	process := func(n, parent, group int, age time.Duration) Process {
		id := Identity{PID: base + n, Start: uint64(10 + n), Boot: BootID()}
		return Process{Identity: id, Parent: base + parent, Group: base + group, Age: age}
	}
	leader := process(0, -1, 0, time.Hour)
	target := Target{Leaders: []Identity{leader.Identity}, LeftBefore: time.Now().Add(-time.Minute)}
	check := func(what string, h *termination, all []Process, want ...int) {
		t.Helper()
		var got []int
		for _, m := range h.members(all) {
			got = append(got, m.PID-base)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	child, grandchild, orphan := process(1, 0, 0, time.Hour), process(2, 1, 2, time.Hour), process(3, -1, 0, time.Hour)
	all := []Process{grandchild, orphan, leader, child, process(9, -1, 9, time.Hour)}
	h := newTermination(target, all)
	check("with its leader", h, all, 0, 1, 2, 3)
	check("without it", h, []Process{process(4, 2, 4, 0), grandchild, orphan}, 2, 3, 4)

	left := []Process{orphan, process(5, -1, 0, 0)}
	check("a leader that had ended before", newTermination(target, left), left, 3)
	stranger := leader
	stranger.Start++
	reused := []Process{stranger, orphan}
	check("another process with its number", newTermination(target, reused), reused)
}

// Who is above us is spared also when we cannot see it.
func TestAHiddenAncestor(t *testing.T) {
	const parent, hidden = 1 << 30, 1<<30 + 1
	all := []Process{{Identity: Identity{PID: os.Getpid()}, Parent: parent}, {Identity: Identity{PID: parent}, Parent: hidden}}
	if above := ancestors(all); !above[parent] || !above[hidden] {
		t.Errorf("above us are %v", above)
	}
}
