package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// errNoServer means that a gateway has no server process at rest.
var errNoServer = errors.New("it has no server to kill")

// killings kills the server behind each gateway and measures how long the same session goes without an answer.
func (b *bench) killings() []kills {
	rows := make([]kills, len(b.gateways))
	for i, g := range b.gateways {
		rows[i] = kills{Name: g.name, Row: make([][]float64, b.plan.Row-1)}
	}
	for start := range b.plan.Starts {
		for i, g := range b.gateways {
			row := &rows[i]
			if row.NoServer || row.Starts > 1 && row.Back == 0 { // two are enough to show that it never comes back
				continue
			}
			b.say("kills: start %d of %d: %s", start+1, b.plan.Starts, g.name)
			count := 1
			if start < b.plan.Rows {
				count = b.plan.Row
			}
			err := b.killRow(g, count, row)
			if row.NoServer = errors.Is(err, errNoServer) && row.Starts == 0; err != nil && !row.NoServer {
				b.fail("kills: %s: %v", g.name, err)
			}
		}
	}
	return rows
}

// killRow starts a gateway and kills its server so many times, each time once it serves again.
func (b *bench) killRow(g gateway, count int, row *kills) error {
	r, err := b.start(g, 1)
	if err != nil {
		return err
	}
	defer r.stop(b.echo)
	s, err := connect(r.url, 1)
	if err != nil {
		return err
	}
	defer s.close()
	params := echoParams(s.tools[0], messageSize)
	for at := range count {
		// The first answer after a start may come from memory; this one comes from the server that is killed.
		if _, err := s.ask("tools/call", params, patience); err != nil {
			return fmt.Errorf("call before kill %d: %w", at+1, err)
		}
		time.Sleep(100 * time.Millisecond) // a server that was started for this call only has ended then
		begin, err := b.killServers(r)
		if err != nil {
			return err
		}
		wait, failed, back := s.awaitBack(params, begin)
		if at == 0 {
			row.Starts++
			row.Failed += failed
		} else {
			row.RowFailed += failed
		}
		switch {
		case !back && at > 0:
			row.RowLost++
			return nil
		case !back:
			return nil
		case at == 0:
			row.Back++
			row.First = append(row.First, wait)
		default:
			row.Row[at-1] = append(row.Row[at-1], wait)
		}
	}
	return nil
}

// killServers kills every server of a gateway and says when.
func (b *bench) killServers(r *running) (begin time.Time, err error) {
	servers := serversUnder(r.cmd.Process.Pid, b.echo)
	if len(servers) == 0 {
		return begin, errNoServer
	}
	begin = time.Now()
	for _, pid := range servers {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return begin, fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return begin, nil
}

// awaitBack calls until an answer comes, and counts the calls that failed.
func (s *session) awaitBack(params string, begin time.Time) (wait float64, failed int, back bool) {
	for time.Since(begin) < comesBack {
		if _, err := s.ask("tools/call", params, comesBack-time.Since(begin)); err == nil {
			return milliseconds(time.Since(begin)), failed, true
		}
		failed++
		time.Sleep(retryEvery)
	}
	return 0, failed, false
}
