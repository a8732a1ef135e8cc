package main

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// errNoServer means that a gateway has no server process at rest.
var errNoServer = errors.New("it has no server to kill")

const (
	comesBack  = 10 * time.Second     // how long a gateway has to serve a session again whose server was killed
	retryEvery = 5 * time.Millisecond // the pause after a call that failed
)

// kills is how one gateway takes the death of a session's server.
type kills struct {
	name      string
	starts    int
	noServer  bool        // there is none between calls
	back      int         // of the first kills after a start: the session was served again
	first     []float64   // from the first SIGKILL to the next good answer, ms
	failed    int         // calls that failed until then
	row       [][]float64 // the kills right after the first, by their place, ms
	rowFailed int         // calls that failed between these
}

// killings kills the server behind each gateway and measures how long the same session goes without an answer.
func (b *bench) killings() (outcome, error) {
	gateways := b.plain()
	rows := make([]kills, len(gateways))
	for i, g := range gateways {
		rows[i] = kills{name: g.name, row: make([][]float64, b.crowd.row-1)}
	}
	for start := range b.crowd.starts {
		for i, g := range gateways {
			row := &rows[i]
			if row.noServer || row.starts > 1 && row.back == 0 { // two are enough to show that it never comes back
				continue
			}
			b.say("kills: start %d of %d: %s", start+1, b.crowd.starts, g.name)
			count := 1
			if start < b.crowd.rows {
				count = b.crowd.row
			}
			err := b.killRow(g, count, row)
			if row.noServer = errors.Is(err, errNoServer) && row.starts == 0; err != nil && !row.noServer {
				b.fail("kills: %s: %v", g.name, err)
			}
		}
	}
	return outcome{tables: []figures.Table{killsTable(rows, b.crowd.row)}}, nil
}

// killRow starts a gateway and kills its server so many times, each time once it serves again.
func (b *bench) killRow(g gateway, count int, row *kills) error {
	r, err := b.startGateway(g, 1)
	if err != nil {
		return err
	}
	defer r.stop()
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
			row.starts++
			row.failed += failed
		} else {
			row.rowFailed += failed
		}
		switch {
		case !back:
			return nil
		case at == 0:
			row.back++
			row.first = append(row.first, wait)
		default:
			row.row[at-1] = append(row.row[at-1], wait)
		}
	}
	return nil
}

// killServers kills every server of a gateway and says when.
func (b *bench) killServers(r *running) (begin time.Time, err error) {
	servers := serversUnder(r.pid(), b.echo)
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

func killsTable(rows []kills, inRow int) figures.Table {
	t := figures.Table{
		Title: "Gateways: the server is killed",
		Note: fmt.Sprintf("From SIGKILL of all server processes to the next good answer in the same session, asked for at once and, after an error, every %d ms "+
			"for %d s. Failed calls are what the client sees meanwhile. First: the first kill after a start. Then: further kills of the same server, each as soon as it "+
			"serves again; here outlive's default delays between crashes count (0, 250 ms, 500 ms, 1 s, …, each up to half as long again; after more than ten crashes in "+
			"ten minutes it gives up for a minute and answers with an error). The calls are of a tool that declares itself read-only: outlive sends such a call again when "+
			"its server dies, and would answer others with an error that says that the outcome is unknown.",
			retryEvery.Milliseconds(), int(comesBack.Seconds())),
		Rows: [][]string{{"gateway", "starts", "came back", "gap p50, ms", "least–greatest", "failed calls"}},
	}
	for at := range inRow - 1 {
		t.Rows[0] = append(t.Rows[0], fmt.Sprintf("then: %s, ms", ordinal(at+2)))
	}
	t.Rows[0] = append(t.Rows[0], "failed calls then")
	for _, k := range rows {
		row := []any{k.name, k.starts, k.back, figures.Median(k.first), between(figures.Percentile(k.first, 0), figures.Percentile(k.first, 1)), k.failed}
		if k.noServer {
			row = []any{k.name, "–", "no server runs between calls", "–", "–", "–"}
		}
		for _, waits := range k.row {
			row = append(row, figures.Median(waits))
		}
		if k.back > 0 {
			row = append(row, k.rowFailed)
		} else {
			row = append(row, "–")
		}
		t.Add(row...)
	}
	return t
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return fmt.Sprintf("%dth", n)
}

// serversUnder are the processes of the server below a gateway.
func serversUnder(pid int, server string) []int {
	return slices.DeleteFunc(proc.Descendants(pid), func(child int) bool { return !proc.Runs(child, server) })
}
