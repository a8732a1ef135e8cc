package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/faults"
)

// Every row has a cell for each shape, promised rows are judged, others are not, and a missing peer is named.
func TestFaultTables(t *testing.T) {
	b := &bench{options: options{quick: true}}
	cells := slices.Repeat([]string{"none, 5.0 ms"}, len(faults.Shapes()))
	for _, fault := range b.quickFaults(faults.Faults()) {
		b.ownRows = append(b.ownRows, faultRow{head: []string{"outlive run", string(fault)}, cells: cells, bad: 1})
	}
	own := b.ownRows.outcome("Title", "", "command", func(r faultRow) bool { return r.head[1] == string(faults.Killed) })
	if len(own.promises) != 1 || own.promises[0].kept() || own.promises[0].got != 1 {
		t.Errorf("one promised row has a bad cell, and the promises are %+v", own.promises)
	}
	t.Setenv("PATH", t.TempDir()) // nobody is installed
	beside, err := b.peerFaults()
	if err != nil || len(beside.promises) != 0 {
		t.Fatalf("others are judged: %+v, %v", beside.promises, err)
	}
	rows := beside.tables[0].Rows
	if want := len(b.ownRows) * (1 + len(faults.Peers(func(string) (string, string) { return "", "" }))); len(rows)-1 != want {
		t.Errorf("%d rows beside each other, want %d: %q", len(rows)-1, want, rows)
	}
	for i, row := range rows {
		if len(row) != 2+len(faults.Shapes()) {
			t.Errorf("%d cells in %q", len(row), row)
		}
		if ours := row[0] == "outlive run"; i > 0 && !ours && !strings.Contains(row[2], "not installed") {
			t.Errorf("a peer that is not there: %q", row)
		}
	}
}
