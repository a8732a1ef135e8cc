package process

import (
	"slices"
	"testing"
)

// An orphan keeps the number of a parent that has ended. Whoever gets that number later is not its parent.
func TestOrphansOfAnEarlierProcessAreNotOurs(t *testing.T) {
	entry := func(pid, parent int, start uint64) Process {
		return Process{Identity: Identity{PID: pid, Start: start}, Parent: parent}
	}
	all := []Process{
		entry(30, 20, 12), // a grandchild, before its parent in the table
		entry(20, 10, 11),
		entry(40, 10, 3), // the desktop's shell: its parent was another 10
		entry(50, 40, 20),
		entry(10, 1, 10),
		entry(60, 10, 10), // in the same tick
		entry(1, 1, 0),
	}
	var got []int
	table := TableOf(all)
	for _, e := range table.Tree(10) {
		got = append(got, e.PID)
	}
	slices.Sort(got)
	if want := []int{10, 20, 30, 60}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if of := table.Tree(99); len(of) != 0 {
		t.Errorf("of nobody: %v", of)
	}
	for pid, want := range map[int][]int{30: {30, 20, 10, 1}, 50: {50, 40}, 1: {1}, 99: nil} {
		var lineage []int
		for e := range table.Lineage(pid) {
			lineage = append(lineage, e.PID)
		}
		if !slices.Equal(lineage, want) {
			t.Errorf("%d and those above: %v, want %v", pid, lineage, want)
		}
	}
}
