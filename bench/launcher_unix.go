//go:build unix

package main

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// launchers measures commands that only start the server, such as npx: from exec to the first answer, and then from each
// kill to the next.
func (b *bench) launchers(servers []namedServer) ([]launcherRow, error) {
	var rows []launcherRow
	for _, server := range servers {
		row, err := b.launcher(server)
		if err != nil {
			return nil, fmt.Errorf("restarts of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (b *bench) launcher(server namedServer) (launcherRow, error) {
	var first []float64
	var killed deaths
	for round := range b.plan.Launches {
		b.progress("restarts of %s: round %d of %d", server.name, round+1, b.plan.Launches)
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
		Server: server.name, Count: len(killed.gaps), First: figures.Median(first),
		Restart: figures.Median(killed.gaps), Worst: figures.Percentile(killed.gaps, 1),
	}, nil
}

// launchesEach is how many restarts follow on each start.
const launchesEach = 3
