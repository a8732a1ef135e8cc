package main

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// backends is what one gateway of so many servers does, with one session.
type backends struct {
	name        string
	servers     int
	first, next []float64 // from exec until all tools are listed, ms: at the first start, and at the next one in the same directory
	warm        []float64 // tools/list once more, ms
	uses        []usage   // after one call of each server
}

// backendCurves measures the gateways that can have several servers with more and more of them.
func (b *bench) backendCurves() (outcome, error) {
	var rows []backends
	for _, n := range b.crowd.servers {
		first := len(rows)
		for round := range b.crowd.lists {
			at := first
			for _, g := range b.measuredGateways {
				if !g.many {
					continue
				}
				if round == 0 {
					rows = append(rows, backends{name: g.name, servers: n})
				}
				b.say("%d servers: %s", n, g.name)
				if err := b.listAll(g, &rows[at]); err != nil {
					b.fail("%d servers: %s: %v", n, g.name, err)
				}
				at++
			}
		}
	}
	return outcome{tables: []figures.Table{backendsTable(rows, b.crowd.lists)}}, nil
}

// listAll starts a gateway twice in one directory: the first time it knows nothing.
func (b *bench) listAll(g gateway, row *backends) error {
	dir, err := b.home()
	if err != nil {
		return err
	}
	first, err := b.listOnce(g, row.servers, dir, nil)
	if err != nil {
		return err
	}
	next, err := b.listOnce(g, row.servers, dir, row)
	if err != nil {
		return err
	}
	row.first, row.next = append(row.first, first), append(row.next, next)
	return nil
}

// listOnce starts a gateway and returns the time from exec until one session has all tools, in ms. With a row it goes on to list
// them again, to call each server and to look at what that takes.
func (b *bench) listOnce(g gateway, servers int, dir string, row *backends) (listed float64, err error) {
	r, err := b.startIn(g, servers, dir)
	if err != nil {
		return 0, err
	}
	defer r.stop()
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
		row.warm = append(row.warm, milliseconds(time.Since(begin)))
	}
	time.Sleep(time.Second) // collectors give memory back
	row.uses = append(row.uses, look(r.pid(), b.echo))
	return listed, nil
}

func backendsTable(rows []backends, lists int) figures.Table {
	t := figures.Table{
		Title: "Gateways: more and more servers behind one",
		Note: fmt.Sprintf("One session; only gateways that can have several servers. All tools: from exec until tools/list has the tools of all servers, at the first start in an empty "+
			"directory and at the next one there, when outlive knows the lists already and starts the servers beside. Again: tools/list once more. Memory and processes: after one "+
			"call of each server, as far as %d s allow. Medians of %d.", int(callingTime.Seconds()), lists),
		Rows: [][]string{{"gateway", "servers", "all tools: first start, ms", "next start, ms", "again, ms", "own MB", "own PSS, MB", "server processes"}},
	}
	for _, b := range rows {
		use, processes := medianUsage(b.uses), "–"
		if len(b.uses) > 0 {
			processes = fmt.Sprint(use.processes)
		}
		t.Add(b.name, b.servers, figures.Median(b.first), figures.Median(b.next), figures.Median(b.warm), use.own.Dirty/mebibyte, use.own.PSS/mebibyte, processes)
	}
	return t
}
