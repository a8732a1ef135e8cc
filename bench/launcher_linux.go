package main

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// launcherRow compares the first start of a launcher's server with the restarts. Times in ms.
type launcherRow struct {
	server         string
	count          int
	first          float64 // exec of outlive → first answer, median
	restart, worst float64 // SIGKILL → next answer
}

type launcherRows []launcherRow

func (rows launcherRows) outcome() (out outcome) {
	t := figures.Table{
		Title: "Servers behind a launcher, ms",
		Note:  "First: from exec of outlive to the first answer. Restart: from SIGKILL of the server to the next answer; the launcher is left out.",
		Rows:  [][]string{{"command", "first start", "restart", "longest", "restart ÷ first", "restarts"}},
	}
	for _, l := range rows {
		t.Add(l.server, l.first, l.restart, l.worst, figures.Ratio(l.restart, l.first), l.count)
		out.promises = append(out.promises, promise{name: "restart, " + l.server, got: l.restart / l.first, limit: 0.4, unit: " × first start"})
	}
	out.tables = []figures.Table{t}
	return out
}

// launched measures commands that only start the server, such as npx: from exec to the first answer, and then from each
// kill to the next.
func (b *bench) launched() (outcome, error) {
	var rows launcherRows
	for _, server := range b.launchers {
		row, err := b.launcher(server)
		if err != nil {
			return outcome{}, fmt.Errorf("restarts of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return outcome{}, nil
	}
	return rows.outcome(), nil
}

func (b *bench) launcher(server namedServer) (launcherRow, error) {
	var first []float64
	var killed deaths
	for round := range b.plan.launches {
		b.say("restarts of %s: round %d of %d", server.name, round+1, b.plan.launches)
		begin := time.Now()
		// Memory would answer before the server can.
		p, j, err := b.startTold(server.command, "--no-fast-start")
		if err != nil {
			return launcherRow{}, err
		}
		first = append(first, milliseconds(time.Since(begin)))
		for range launchesEach {
			ready := j.count("server_ready")
			err := p.killServing(j, &killed)
			if err == nil {
				err = j.await("server_ready", ready+1)
			}
			if err != nil {
				p.stop()
				return launcherRow{}, err
			}
			time.Sleep(spareRest)
		}
		p.stop()
	}
	return launcherRow{
		server: server.name, count: len(killed.gaps), first: figures.Median(first),
		restart: figures.Median(killed.gaps), worst: figures.Percentile(killed.gaps, 1),
	}, nil
}

// launchesEach is how many restarts follow on each start.
const launchesEach = 3
