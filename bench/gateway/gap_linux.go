package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// gaps kills the server behind each gateway and measures how long the same session goes without an answer.
func (b *bench) gaps() ([]gap, error) {
	var rows []gap
	for _, g := range b.gateways {
		kills := b.plan.Kills
		if g.command != nil {
			kills = b.plan.OtherKills
		}
		row := gap{Name: g.name, Ours: g.command == nil}
		var waits []float64
		for row.Kills < kills {
			b.say("restart gap of %s: %d of %d", g.name, row.Kills+1, kills)
			more, err := b.killUntilGone(g, kills-row.Kills, &row)
			if err != nil {
				return nil, fmt.Errorf("restart gap of %s: %w", g.name, err)
			}
			waits = append(waits, more...)
		}
		row.Gap, row.P90 = figures.Median(waits), figures.Percentile(waits, 0.9)
		rows = append(rows, row)
	}
	return rows, nil
}

// killUntilGone starts a gateway and kills its server up to most times, but no more once its session is lost. It returns the
// waits of those that were answered, in ms.
func (b *bench) killUntilGone(g gateway, most int, row *gap) (waits []float64, err error) {
	r, err := b.start(g)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	s, err := connect(r.url)
	if err != nil {
		return nil, err
	}
	defer s.close()
	params := s.echoParams(messageSize)
	for range most {
		// The first answer after a start may come from memory; this one comes from the server that is killed.
		if _, err := s.ask("tools/call", params, patience); err != nil {
			return nil, err
		}
		servers := serversUnder(r.cmd.Process.Pid, b.echo)
		if len(servers) == 0 {
			return nil, fmt.Errorf("it has no server to kill")
		}
		row.Kills++
		begin := time.Now()
		for _, pid := range servers {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return nil, fmt.Errorf("kill %d: %w", pid, err)
			}
		}
		wait, back := s.awaitBack(params, begin, row)
		if !back {
			row.Lost++
			return waits, nil
		}
		waits = append(waits, wait)
	}
	return waits, nil
}

// awaitBack calls until an answer comes, and counts the calls that failed.
func (s *session) awaitBack(params string, begin time.Time, row *gap) (wait float64, back bool) {
	for time.Since(begin) < comesBack {
		if _, err := s.ask("tools/call", params, comesBack-time.Since(begin)); err == nil {
			return milliseconds(time.Since(begin)), true
		}
		row.Failed++
		time.Sleep(retryEvery)
	}
	return 0, false
}
