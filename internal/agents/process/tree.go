package process

import "iter"

// Table is the processes of one moment, and which of them has started which. The zero value has none.
type Table struct {
	All      []Process // in the system's order
	entries  map[int]Process
	children map[int][]Process
}

// TableOf makes a table of all processes.
func TableOf(all []Process) Table {
	t := Table{All: all, entries: make(map[int]Process, len(all)), children: map[int][]Process{}}
	for _, e := range all {
		t.entries[e.PID] = e
	}
	for _, e := range all {
		if parent, there := t.parent(e); there {
			t.children[parent.PID] = append(t.children[parent.PID], e)
		}
	}
	return t
}

// Entry is the process with a number.
func (t Table) Entry(pid int) (Process, bool) {
	e, there := t.entries[pid]
	return e, there
}

// parent is the process that has started e, if it lives. A younger process with its number is not: on Windows orphans keep the number
// of their parent, which another process gets one day.
func (t Table) parent(e Process) (Process, bool) {
	p, there := t.entries[e.Parent]
	return p, there && p.PID != e.PID && p.Start <= e.Start
}

// Tree is a process with its descendants, each behind its parent. nil: there is no such process.
func (t Table) Tree(root int) []Process {
	e, there := t.entries[root]
	if !there {
		return nil
	}
	tree := []Process{e}
	for i := 0; i < len(tree); i++ {
		for _, child := range t.children[tree[i].PID] {
			if child.PID != root { // a table that was read while it changed may contain a circle
				tree = append(tree, child)
			}
		}
	}
	return tree
}

// Lineage is a process with those above it, each behind what it has started.
func (t Table) Lineage(pid int) iter.Seq[Process] {
	return func(yield func(Process) bool) {
		e, there := t.entries[pid]
		for range t.entries { // in a circle no longer than the table
			if !there || !yield(e) {
				return
			}
			e, there = t.parent(e)
		}
	}
}
