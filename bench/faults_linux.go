package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/faults"
	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/program"
)

// errLeft means that a cell of outlive's own is not as promised.
var errLeft = errors.New("the fault matrix has processes left, or a cell that failed")

// peerWorkers is how many cells of peers run at once: they mostly wait.
const peerWorkers = 4

// faultRow is one line of a fault table: its heading words and a text for each shape.
type faultRow struct {
	head  []string
	cells []string
	bad   bool
}

// faultResults are everything that one run of the matrix found out.
type faultResults struct {
	Machine  figures.Machine
	Alone    bool // in a pid namespace of its own
	Took     time.Duration
	Own      []faultRow
	Peers    []faultRow
	Degraded []faultRow
}

// faultRun is the matrix under way.
type faultRun struct {
	setup    faults.Setup
	peers    string
	progress func(string, ...any)
	found    faultResults
}

// runFaults measures the fault matrix, reports it and writes it into the page.
func runFaults(opts options) error {
	ran, inside, err := faults.Isolate()
	if ran || err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "outlive-bench-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	r := &faultRun{peers: opts.peers, progress: newProgress(os.Stderr)}
	r.progress("building")
	victim, err := program.Build(dir, "bench/victim")
	if err != nil {
		return err
	}
	built, err := buildAll(dir, opts.outlive)
	if err != nil {
		return err
	}
	r.setup = faults.Setup{Outlive: []string{built.outlive}, Victim: []string{victim}}
	begin := time.Now()
	r.own()
	r.degraded()
	r.others()
	r.progress("")
	r.found.Machine, r.found.Alone, r.found.Took = figures.ThisMachine(), inside, time.Since(begin)
	fmt.Print(faultReport(&r.found))
	if opts.docs != "" && !opts.quick {
		if err := writeFaults(opts.docs, &r.found); err != nil {
			return err
		}
	}
	for _, row := range append(r.found.Own, r.found.Degraded...) {
		if row.bad {
			return errLeft
		}
	}
	return nil
}

// row runs one fault with all shapes, so many cells at once.
func (r *faultRun) row(head []string, workers int, run func(faults.Shape) (faults.Result, error)) faultRow {
	shapes := faults.Shapes()
	row := faultRow{head: head, cells: make([]string, len(shapes))}
	var all sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, workers)
	for i, shape := range shapes {
		slots <- struct{}{}
		r.progress("%s, %s", head, shape.Name)
		all.Go(func() {
			result, err := run(shape)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			row.cells[i] = result.String()
			row.bad = row.bad || err != nil || len(result.Left) > 0
			if err != nil {
				row.cells[i] = "**failed**"
				fmt.Fprintf(os.Stderr, "\n%s: %v\n", head, err)
			}
			for _, left := range result.Left {
				r.progress("%s, %s: left: %s", head, shape.Name, left)
			}
		})
	}
	all.Wait()
	return row
}

// own is the matrix of outlive. Cells run one by one, because their times are figures and because each outlive sweeps
// what a dead one has left; those that only wait for a health check run together.
func (r *faultRun) own() {
	for _, variant := range []struct {
		name  string
		flags []string
	}{{"outlive run", nil}, {"--standby 1", []string{"--standby", "1"}}} {
		setup := r.setup
		setup.Flags = variant.flags
		for _, fault := range faults.Faults() {
			workers := 1
			if fault == faults.ServerHangs {
				workers = len(faults.Shapes())
			}
			r.found.Own = append(r.found.Own, r.row([]string{variant.name, string(fault)}, workers, func(s faults.Shape) (faults.Result, error) {
				return setup.Run(context.Background(), fault, s)
			}))
		}
	}
}

// degraded is the matrix on machines that lack something.
func (r *faultRun) degraded() {
	for _, condition := range faults.Conditions() {
		setup := condition.On(r.setup)
		for _, fault := range []faults.Fault{faults.ServerKilled, faults.KeeperKilled, faults.ClientLeaves, faults.Killed, faults.BothKilled} {
			row := r.row([]string{condition.Name, string(fault)}, 1, func(s faults.Shape) (faults.Result, error) {
				return setup.Run(context.Background(), fault, s)
			})
			row.bad = row.bad && condition.Promised
			r.found.Degraded = append(r.found.Degraded, row)
		}
	}
}

// others puts what other supervisors leave beside it.
func (r *faultRun) others() {
	for _, fault := range faults.PeerFaults() {
		for _, peer := range faults.Peers(r.peers) {
			head := []string{peer.Name + " " + peer.Version, string(fault)}
			if peer.Path == "" {
				row := faultRow{head: []string{peer.Name, string(fault)}}
				for range faults.Shapes() {
					row.cells = append(row.cells, "not installed")
				}
				r.found.Peers = append(r.found.Peers, row)
				continue
			}
			r.found.Peers = append(r.found.Peers, r.row(head, peerWorkers, func(s faults.Shape) (faults.Result, error) {
				return peer.Run(context.Background(), r.setup.Victim, fault, s)
			}))
		}
	}
}
