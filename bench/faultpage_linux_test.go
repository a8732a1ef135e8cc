package main

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/bench/faults"
)

// sampleFaults is a run with one cell of each kind.
func sampleFaults() *faultResults {
	cells := func(text string) []string {
		return strings.Split(strings.Repeat(text+"\n", len(faults.Shapes())), "\n")[:len(faults.Shapes())]
	}
	r := &faultResults{Took: time.Minute, Alone: true}
	for _, fault := range faults.Faults() {
		r.Own = append(r.Own, faultRow{head: []string{"outlive run", string(fault)}, cells: cells("none, 5.0 ms")})
	}
	for _, fault := range faults.PeerFaults() {
		r.Peers = append(r.Peers, faultRow{head: []string{"runsv 2", string(fault)}, cells: cells("**4 of 4**")},
			faultRow{head: []string{"tini", string(fault)}, cells: cells("not installed")})
	}
	return r
}

// Every row of every table has a cell for each shape, ours stands beside each peer's, and a missing peer is named.
func TestFaultTables(t *testing.T) {
	list := faultTables(sampleFaults())
	for _, table := range list {
		for _, row := range table.Rows {
			if len(row) != 2+len(faults.Shapes()) {
				t.Errorf("%s: %d cells in %q", table.Title, len(row), row)
			}
		}
	}
	beside := list[len(list)-1].Rows[1:]
	if len(beside) != 3*len(faults.PeerFaults()) {
		t.Errorf("%d rows beside each other: %q", len(beside), beside)
	}
	for i, row := range beside {
		if want := []string{"outlive run", "runsv 2", "tini"}[i%3]; row[0] != want {
			t.Errorf("row %d is of %s, want %s", i, row[0], want)
		}
	}
}

// The matrix takes the place of the last one, comes to the end of a page that has none, and touches nothing else.
func TestWithFaults(t *testing.T) {
	const page = "# Page\n\n<!-- bench:begin -->\nx\n<!-- bench:end -->\n\n## Words\n"
	once := withFaults(page, "first\n")
	if want := page + "\n<!-- faults:begin -->\nfirst\n<!-- faults:end -->\n"; once != want {
		t.Errorf("got %q, want %q", once, want)
	}
	if got, want := withFaults(once+"more\n", "second\n"), strings.Replace(once, "first", "second", 1)+"more\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
