package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/faults"
)

// peerWorkers is how many cells of peers run at once: they mostly wait.
const peerWorkers = 4

// faultRow is one line of a fault table: its heading words and a text for each shape.
type faultRow struct {
	head  []string
	cells []string
	bad   int // cells that have failed, or after which somebody was left
}

type faultRows []faultRow

// outcome is a table of the rows; the cells of promised rows are held against what the project promises.
func (rows faultRows) outcome(title, note, first string, promised func(faultRow) bool) outcome {
	t := figures.Table{Title: title, Note: note, Rows: [][]string{{first, "fault"}}}
	for _, s := range faults.Shapes() {
		t.Rows[0] = append(t.Rows[0], s.Name)
	}
	bad, judged := 0, 0
	for _, row := range rows {
		t.Rows = append(t.Rows, slices.Concat(row.head, row.cells))
		if promised(row) {
			bad, judged = bad+row.bad, judged+len(row.cells)
		}
	}
	out := outcome{tables: []figures.Table{t}}
	if judged > 0 {
		out.promises = []promise{{name: fmt.Sprintf("%s: cells of %d with processes left, or that failed", strings.ToLower(title[:1])+title[1:], judged), got: float64(bad), limit: 0}}
	}
	return out
}

// faultSetup is what all cells of outlive have in common. This program is the victim, too.
func (b *bench) faultSetup() faults.Setup {
	return faults.Setup{Outlive: []string{b.outlive}, Victim: []string{b.self}}
}

// faultRow runs one fault with all shapes, so many cells at once.
func (b *bench) faultRow(head []string, workers int, run func(faults.Shape) (faults.Result, error)) faultRow {
	shapes := faults.Shapes()
	row := faultRow{head: head, cells: make([]string, len(shapes))}
	var all sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, workers)
	for i, shape := range shapes {
		slots <- struct{}{}
		b.say("%s, %s", head, shape.Name)
		all.Go(func() {
			result, err := run(shape)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			row.cells[i] = result.String()
			if err != nil {
				row.cells[i] = "**failed**"
				fmt.Fprintf(os.Stderr, "\n%s: %v\n", head, err)
			}
			if err != nil || len(result.Left) > 0 {
				row.bad++
			}
			for _, left := range result.Left {
				b.say("%s, %s: left: %s", head, shape.Name, left)
			}
		})
	}
	all.Wait()
	return row
}

// quickFaults leaves a quick run the faults that need no waiting.
func (b *bench) quickFaults(all []faults.Fault) []faults.Fault {
	if b.quick {
		return slices.DeleteFunc(slices.Clone(all), func(f faults.Fault) bool { return f != faults.ServerKilled && f != faults.Killed })
	}
	return all
}

// ownFaults is the matrix of outlive. Cells run one by one, because their times are figures and because each outlive sweeps
// what a dead one has left; those that only wait for a health check run together.
func (b *bench) ownFaults() (outcome, error) {
	for _, variant := range []struct {
		name  string
		flags []string
	}{{"outlive run", nil}, {"--standby 1", []string{"--standby", "1"}}} {
		setup := b.faultSetup()
		setup.Flags = variant.flags
		for _, fault := range b.quickFaults(faults.Faults()) {
			workers := 1
			if fault == faults.ServerHangs {
				workers = len(faults.Shapes())
			}
			b.ownRows = append(b.ownRows, b.faultRow([]string{variant.name, string(fault)}, workers, func(s faults.Shape) (faults.Result, error) {
				return setup.Run(context.Background(), fault, s)
			}))
		}
	}
	var shapes []string
	for _, s := range faults.Shapes() {
		shapes = append(shapes, "*"+s.Name+"*: "+s.Detail)
	}
	return b.ownRows.outcome("Who is left, and when it serves again",
		"Cells say how many of the processes that should have gone are left, or how long after the fault the last of them had gone, and how "+
			"long after it another process answered a call. SIGSTOP alone is noticed by the health check, with nobody calling. "+
			"“N before it” is what a SIGKILL of outlive and its keeper at once leaves until the next `outlive run` sweeps, a second after its start, "+
			"SIGTERM first.\n\nColumns: "+strings.Join(shapes, "; ")+".", "command", func(faultRow) bool { return true }), nil
}

// degradedFaults is the matrix on machines that lack something.
func (b *bench) degradedFaults() (outcome, error) {
	var rows faultRows
	promised := map[string]bool{}
	for _, condition := range faults.Conditions() {
		setup := condition.On(b.faultSetup())
		promised[condition.Name] = condition.Promised
		for _, fault := range b.quickFaults([]faults.Fault{faults.ServerKilled, faults.KeeperKilled, faults.ClientLeaves, faults.Killed, faults.BothKilled}) {
			rows = append(rows, b.faultRow([]string{condition.Name, string(fault)}, 1, func(s faults.Shape) (faults.Result, error) {
				return setup.Run(context.Background(), fault, s)
			}))
		}
	}
	return rows.outcome("The same where something is missing",
		"“64 descriptors” is `ulimit -n 64`. “disk full” is 64 KiB of memory for outlive's state, all taken. "+
			"“no calls with pidfds” is a seccomp filter that answers ENOSYS to pidfd_open, pidfd_send_signal and pidfd_getfd, as older container "+
			"engines do. Nothing is promised there but that the server is served.", "machine", func(r faultRow) bool { return promised[r.head[0]] }), nil
}

// peerFaults puts what other supervisors leave beside it.
func (b *bench) peerFaults() (outcome, error) {
	find := func(name string) (path, version string) {
		path, version, found := b.peer(name)
		if !found {
			path, _ = exec.LookPath(name) // it may be installed on this machine
		}
		return path, version
	}
	peers := faults.Peers(find)
	var rows faultRows
	var details []string
	for _, p := range peers {
		details = append(details, p.Name+": "+p.Detail)
	}
	for _, fault := range b.quickFaults(faults.PeerFaults()) {
		for _, row := range b.ownRows { // the row to compare with
			if row.head[0] == b.ownRows[0].head[0] && row.head[1] == string(fault) {
				rows = append(rows, row)
			}
		}
		for _, peer := range peers {
			if peer.Path == "" {
				rows = append(rows, faultRow{head: []string{peer.Name, string(fault)}, cells: slices.Repeat([]string{"not installed"}, len(faults.Shapes()))})
				continue
			}
			rows = append(rows, b.faultRow([]string{peer.Name + " " + peer.Version, string(fault)}, peerWorkers, func(s faults.Shape) (faults.Result, error) {
				return peer.Run(context.Background(), b.faultSetup().Victim, fault, s)
			}))
		}
	}
	return rows.outcome("The same with other supervisors",
		"Defaults unless said ("+strings.Join(details, "; ")+"). After SIGTERM a peer has 15 s to end, "+
			"then 2 s for who is left; after a SIGKILL, 2 s. tini restarts nothing. “back” is when the next server has begun. "+
			"Other supervisors do not promise to end what got away from its server; MCP servers started through npx and their like do get away.",
		"supervisor", func(faultRow) bool { return false }), nil
}

// faultsNote says where the matrix ran.
func faultsNote(b *bench) string {
	if os.Getpid() == 1 {
		return "In a pid namespace of its own. " + peersNote(b)
	}
	return "Among the machine's other processes. " + peersNote(b)
}

// peersNote says where the other programs are from.
func peersNote(*bench) string {
	return "`bench/peers.sh DIR` installs the other programs that `-peers DIR` names."
}
