//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// standbys measures, for each server, the gap that a client sees when the server is killed and a spare stands by.
func (b *bench) standbys(servers []namedServer) ([]standbyRow, error) {
	var rows []standbyRow
	for _, server := range servers {
		row, err := b.standby(server)
		if err != nil {
			return nil, fmt.Errorf("spare of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// standby measures one server: its own dying and the gaps take turns.
func (b *bench) standby(server namedServer) (standbyRow, error) {
	p, j, err := b.startTold(server.command, "--standby", "1")
	if err != nil {
		return standbyRow{}, err
	}
	defer p.stop()
	var dying, answers, gaps []float64
	for i := range b.plan.Spares {
		b.progress("spare of %s: %d of %d", server.name, i+1, b.plan.Spares)
		answer, death, err := b.lastOf(server.command)
		if err != nil {
			return standbyRow{}, err
		}
		answers, dying = append(answers, answer), append(dying, death)
		if err := j.await("standby_ready", i+1); err != nil {
			return standbyRow{}, err
		}
		time.Sleep(spareRest)
		took, err := p.killServing(j)
		if err != nil {
			return standbyRow{}, err
		}
		gaps = append(gaps, took)
	}
	row := standbyRow{Server: server.name, Count: b.plan.Spares, Dying: figures.Median(dying), Answer: figures.Median(answers),
		Gap: figures.Median(gaps), GapP90: figures.Percentile(gaps, 0.9)}
	row.Announced, row.Ordinary, err = b.announced(p, j)
	return row, err
}

// spareRest lets the machine come to rest when a spare is ready: it is ready for long before it is needed.
const spareRest = 50 * time.Millisecond

// lastOf starts a server directly and returns how many ms it takes for one more answer after a rest, as a spare has to
// give, and how many the system itself needs from SIGKILL to its end.
func (b *bench) lastOf(server []string) (answer, death float64, err error) {
	p, err := b.start(direct, server)
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	time.Sleep(spareRest)
	begin := time.Now()
	if err := p.list(); err != nil {
		return 0, 0, err
	}
	answer = milliseconds(time.Since(begin))
	time.Sleep(spareRest)
	death, err = timeDeath(p.cmd.Process.Pid)
	return answer, death, err
}

// killServing kills the process that serves, asks at once, and returns how many ms after the kill the answer came.
func (p *peer) killServing(j *journal) (float64, error) {
	if err := j.read(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := syscall.Kill(j.serving(), syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("kill %d: %w", j.serving(), err)
	}
	if err := p.list(); err != nil {
		return 0, err
	}
	return milliseconds(time.Since(begin)), nil
}

// restartCall asks outlive's own tool for a restart.
func restartCall(id int) string {
	return fmt.Sprintf(callHead+`%d,"method":"tools/call","params":{"name":"restart_server","arguments":{"reason":"bench"}}}`+"\n", id)
}

// announced asks for restarts by the tool and lists the tools all the while. It returns the 99th percentile in ms of
// what the answers took meanwhile, and of as many without a restart.
func (b *bench) announced(p *peer, j *journal) (during, ordinary float64, err error) {
	var with, without []float64
	for i := range b.plan.Announced {
		b.progress("announced restart: %d of %d", i+1, b.plan.Announced)
		if err := j.read(); err != nil {
			return 0, 0, err
		}
		completed, ready := j.count("restart_completed"), j.count("standby_ready")
		if _, err := p.ask(restartCall); err != nil {
			return 0, 0, fmt.Errorf("restart_server: %w", err)
		}
		calls := 0
		for ; j.count("restart_completed") == completed; calls++ {
			if with, err = p.timedList(with); err != nil {
				return 0, 0, err
			}
			if err := j.read(); err != nil {
				return 0, 0, err
			}
		}
		if err := j.await("standby_ready", ready+1); err != nil {
			return 0, 0, err
		}
		time.Sleep(throttleTime)
		for range calls {
			if without, err = p.timedList(without); err != nil {
				return 0, 0, err
			}
			if err := j.read(); err != nil {
				return 0, 0, err
			}
		}
	}
	return figures.Percentile(with, 0.99), figures.Percentile(without, 0.99), nil
}

// timedList lists the tools once and adds how many ms that took.
func (p *peer) timedList(to []float64) ([]float64, error) {
	begin := time.Now()
	err := p.list()
	return append(to, milliseconds(time.Since(begin))), err
}
