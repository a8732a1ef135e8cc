package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/faults"
	"github.com/outlive-mcp/outlive/bench/figures"
)

// faultsSection is where the fault matrix stands in the page.
const faultsSection = "faults"

// faultTables are the report of the matrix.
func faultTables(r *faultResults) []figures.Table {
	rowsOf := func(first string, rows []faultRow) [][]string {
		heading := []string{first, "fault"}
		for _, s := range faults.Shapes() {
			heading = append(heading, s.Name)
		}
		all := [][]string{heading}
		for _, row := range rows {
			all = append(all, append(append([]string(nil), row.head...), row.cells...))
		}
		return all
	}
	// The last fault of ours that peers have too is the row to compare with.
	var beside []faultRow
	for _, fault := range faults.PeerFaults() {
		for _, row := range r.Own {
			if row.head[0] == r.Own[0].head[0] && row.head[1] == string(fault) {
				beside = append(beside, row)
			}
		}
		for _, row := range r.Peers {
			if row.head[1] == string(fault) {
				beside = append(beside, row)
			}
		}
	}
	return []figures.Table{
		{Title: "Who is left, and when it serves again", Note: faultNote(), Rows: rowsOf("command", r.Own)},
		{Title: "The same where something is missing", Note: degradedNote, Rows: rowsOf("machine", r.Degraded)},
		{Title: "The same with other supervisors", Note: peerNote(), Rows: rowsOf("supervisor", beside)},
	}
}

// faultNote explains cells and columns.
func faultNote() string {
	var shapes []string
	for _, s := range faults.Shapes() {
		shapes = append(shapes, "*"+s.Name+"*: "+s.Detail)
	}
	return "Cells say how many of the processes that should have gone are left, or how long after the fault the last of them had gone, and how " +
		"long after it another process answered a call. SIGSTOP alone is noticed by the health check, with nobody calling. " +
		"“N before it” is what a SIGKILL of outlive and its keeper at once leaves until the next `outlive run` sweeps, a second after its start, " +
		"SIGTERM first.\n\nColumns: " + strings.Join(shapes, "; ") + "."
}

const degradedNote = "“64 descriptors” is `ulimit -n 64`. “disk full” is 64 KiB of memory for outlive's state, all taken. " +
	"“no calls with pidfds” is a seccomp filter that answers ENOSYS to pidfd_open, pidfd_send_signal and pidfd_getfd, as older container " +
	"engines do. Nothing is promised there but that the server is served."

func peerNote() string {
	var details []string
	for _, p := range faults.Peers("") {
		details = append(details, p.Name+": "+p.Detail)
	}
	return "Defaults unless said (" + strings.Join(details, "; ") + "). After SIGTERM a peer has 15 s to end, " +
		"then 2 s for who is left; after a SIGKILL, 2 s. tini restarts nothing. “back” is when the next server has begun. " +
		"Other supervisors do not promise to end what got away from its server; MCP servers started through npx and their like do get away."
}

// faultReport is the report as text.
func faultReport(r *faultResults) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; measured in %s; pid namespace of its own: %t\n", r.Machine, r.Took.Round(time.Second), r.Alone)
	for _, t := range faultTables(r) {
		out.WriteString(strings.ReplaceAll(t.Plain(), "**", ""))
	}
	return out.String()
}

// faultSection is the matrix's part of the page.
func faultSection(r *faultResults) string {
	var out strings.Builder
	where := "in a pid namespace of its own"
	if !r.Alone {
		where = "among the machine's other processes"
	}
	fmt.Fprintf(&out, "## Fault matrix\n\nMeasured on %s, in %s, %s, by `go run ./bench -faults -peers DIR`; `bench/peers.sh DIR` installs the other supervisors.\n\n",
		r.Machine, r.Took.Round(time.Second), where)
	for _, t := range faultTables(r) {
		out.WriteString(t.Markdown() + "\n")
	}
	return out.String()
}

// writeFaults puts the matrix into the page: between its markers, or at its end when it has none yet.
func writeFaults(dir string, r *faultResults) error {
	return figures.RewritePage(filepath.Join(dir, "BENCHMARKS.md"), "", func(page string) (string, error) {
		return withFaults(page, faultSection(r)), nil
	})
}

func withFaults(page, section string) string {
	if text, ok := figures.ReplaceSection(page, faultsSection, section); ok {
		return text
	}
	return figures.AppendSection(page, faultsSection, section)
}
