package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// sessionCurves measures what each gateway takes with more and more sessions, each of which has called once and keeps its connection,
// and what the most of them take when their clients have closed the connections.
func (b *bench) sessionCurves() []growth {
	rows := make([]growth, len(b.curved))
	for i, g := range b.curved {
		rows[i] = growth{Name: g.name, Ours: g.ours, Uses: map[int][]usage{}}
	}
	for round := range b.plan.Growths {
		counts := b.plan.Sessions
		if last := round == b.plan.Growths-1; !last {
			counts = counts[:len(counts)-1]
		}
		for i, g := range b.curved {
			if err := b.growSessions(g, counts, &rows[i]); err != nil {
				b.fail("sessions: %s: %v", g.name, err)
			}
		}
	}
	return rows
}

// silent is how long sessions say nothing before memory is looked at. outlive gives memory back after three
// seconds, at most once in ten.
const silent = 12 * time.Second

func (b *bench) growSessions(g gateway, counts []int, row *growth) error {
	g.crowd = true
	r, err := b.start(g, 1)
	if err != nil {
		return err
	}
	f := &fleet{running: r}
	defer f.close(b.echo)
	for _, n := range counts {
		b.say("%d sessions: %s", n, g.name)
		if err := f.open(n); err != nil {
			return err
		}
		time.Sleep(silent) // collectors give memory back
		row.Uses[n] = append(row.Uses[n], look(r.cmd.Process.Pid, b.echo))
	}
	if n := len(f.sessions); n == slices.Max(b.plan.Sessions) {
		for _, s := range f.sessions {
			s.close()
		}
		if _, err := f.sessions[0].ask("tools/list", "{}", patience); err != nil { // memory is given back after traffic
			return err
		}
		time.Sleep(silent)
		row.Apart = append(row.Apart, look(r.cmd.Process.Pid, b.echo))
	}
	return nil
}

// backendCurves measures the gateways that can have several servers with more and more of them.
func (b *bench) backendCurves() []backends {
	var rows []backends
	for _, n := range b.plan.Servers {
		first := len(rows)
		for _, g := range b.curved {
			if g.many {
				rows = append(rows, backends{Name: g.name, Servers: n})
			}
		}
		for range b.plan.Lists {
			at := first
			for _, g := range b.curved {
				if !g.many {
					continue
				}
				b.say("%d servers: %s", n, g.name)
				if err := b.listAll(g, &rows[at]); err != nil {
					b.fail("%d servers: %s: %v", n, g.name, err)
				}
				at++
			}
		}
	}
	return rows
}

// listAll starts a gateway twice in one directory: the first time it knows nothing.
func (b *bench) listAll(g gateway, row *backends) error {
	b.started++
	dir := filepath.Join(b.dir, strconv.Itoa(b.started))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("start %s: %w", g.name, err)
	}
	first, err := b.listOnce(g, row.Servers, dir, nil)
	if err != nil {
		return err
	}
	next, err := b.listOnce(g, row.Servers, dir, row)
	if err != nil {
		return err
	}
	row.First, row.Next = append(row.First, first), append(row.Next, next)
	return nil
}

// listOnce starts a gateway and returns the time from exec until one session has all tools, in ms. With a row it goes on to list
// them again, to call each server and to look at what that takes.
func (b *bench) listOnce(g gateway, servers int, dir string, row *backends) (listed float64, err error) {
	r, err := b.startIn(g, servers, dir)
	if err != nil {
		return 0, err
	}
	defer r.stop(b.echo)
	s, err := connect(r.url, servers)
	if err != nil {
		return 0, err
	}
	defer s.close()
	listed = milliseconds(time.Since(r.began))
	if row == nil {
		return listed, nil
	}
	begin := time.Now()
	for _, tool := range s.tools {
		if time.Since(begin) > callingTime {
			break
		}
		if _, err := s.ask("tools/call", echoParams(tool, messageSize), patience); err != nil {
			return 0, fmt.Errorf("call of %s: %w", tool, err)
		}
	}
	for range 3 {
		begin := time.Now()
		if _, err := s.ask("tools/list", "{}", patience); err != nil {
			return 0, fmt.Errorf("tools/list again: %w", err)
		}
		row.Warm = append(row.Warm, milliseconds(time.Since(begin)))
	}
	time.Sleep(time.Second) // collectors give memory back
	row.Uses = append(row.Uses, look(r.cmd.Process.Pid, b.echo))
	return listed, nil
}
