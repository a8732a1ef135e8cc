//go:build unix

package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// namedServer is a server whose restarts are measured.
type namedServer struct {
	name    string
	command []string
}

// gaps measures each server's cold start, its start-up by the three ways and
// the gap that a client sees when the server is killed behind outlive.
func (b *bench) gaps(servers []namedServer) ([]gapRow, error) {
	rows := make([]gapRow, 0, len(servers))
	for _, server := range servers {
		row, err := b.gap(server)
		if err != nil {
			return nil, fmt.Errorf("restarts of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// gap measures one server: cold starts and gaps take turns.
func (b *bench) gap(server namedServer) (gapRow, error) {
	kept, err := b.start(outlive, server.command)
	if err != nil {
		return gapRow{}, err
	}
	defer kept.stop()
	var cold, gaps []float64
	var starts [ways][]float64
	for i := range b.plan.Starts {
		b.progress("start-up and restart of %s: %d of %d", server.name, i+1, b.plan.Starts)
		for turn := range ways {
			way := (turn + i) % ways
			ready, answered, err := b.coldStart(way, server.command)
			if err != nil {
				return gapRow{}, err
			}
			starts[way] = append(starts[way], ready)
			if way == direct {
				cold = append(cold, answered)
			}
		}
		took, err := kept.killAndAsk()
		if err != nil {
			return gapRow{}, err
		}
		gaps = append(gaps, took)
	}
	row := gapRow{
		Server: server.name, Count: b.plan.Starts,
		Cold: figures.Median(cold), Gap: figures.Median(gaps), GapP90: figures.Percentile(gaps, 0.9),
	}
	for way := range starts {
		row.StartBy[way] = figures.Median(starts[way])
	}
	return row, nil
}

// coldStart starts a server once and returns, in ms since before exec, when
// initialize was answered and when the first request after the handshake was.
func (b *bench) coldStart(way int, server []string) (ready, answered float64, err error) {
	begin := time.Now()
	p, err := startPeer(wayNames[way], b.command(way, server), b.env, b.dir)
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	if err := p.initialize(); err != nil {
		return 0, 0, err
	}
	ready = milliseconds(time.Since(begin))
	err = p.list()
	return ready, milliseconds(time.Since(begin)), err
}

// killAndAsk kills the server behind the peer, asks at once, and returns how
// many ms after the kill the answer came.
func (p *peer) killAndAsk() (float64, error) {
	children, err := serversOf(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if len(children) == 0 {
		return 0, errors.New("the peer has no server to kill")
	}
	begin := time.Now()
	for _, child := range children {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			return 0, fmt.Errorf("kill %d: %w", child, err)
		}
	}
	if err := p.list(); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(begin))
	now, err := serversOf(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if slices.Equal(now, children) {
		return 0, fmt.Errorf("the killed processes %v answered", children)
	}
	return took, nil
}

// restartsWarm is how many restarts come before the first reading, so that
// what is allocated once is there.
const restartsWarm = 200

// restarts kills the echo server count times and compares what outlive holds
// before and after.
func (b *bench) restarts(count int) (*restartFigures, error) {
	p, err := b.start(outlive, []string{b.binaries.echo})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	out := &restartFigures{Count: count}
	pid := p.cmd.Process.Pid
	time.Sleep(settleTime) // what its start still does must not fall between the readings
	begin := time.Now()
	for i := range count + restartsWarm {
		if i == restartsWarm {
			time.Sleep(settleTime)
			out.Before, begin = stateOf(pid), time.Now()
		}
		if i%100 == 0 {
			runtime.GC() // it does not run by itself
			b.progress("restarts: %d of %d", i, count+restartsWarm)
		}
		if _, err := p.killAndAsk(); err != nil {
			return nil, fmt.Errorf("restart %d: %w", i+1, err)
		}
	}
	out.Took = time.Since(begin)
	time.Sleep(settleTime)
	out.After = stateOf(pid)
	return out, nil
}
