package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// fates says what becomes of a request whose process has ended. The first line that fits decides; "*" fits everything. Each
// combination of the columns' values is tried, see TestFates.
//
//	read      whether the process had read the request's last byte
//	request   initialize; reads: lists, reads, ping and the like; call: tools/call; other: a method outlive does not know
//	tool      what the called tool says of itself or was said of it: writes (nothing), idempotent, reads,
//	          allowed (--retry-tool), distrusted (it says reads, but --distrust-annotations)
//	asked     whether the server has asked its client something that may belong to this call, or the call is a task
//	end       crash; planned: outlive ended the process; lost: the connection to a server elsewhere
//	crashes   how many processes in a row crashed with this request before
//	repeated  how often it was sent again before
const fates = `
	read request    tool       asked end     crashes repeated  fate
	no   *          *          *     *       *       *         undelivered

	yes  initialize *          *     *       *       *         again
	yes  *          *          *     crash   1       *         poisonous

	yes  reads      *          *     *       *       *         again

	yes  call       writes     *     *       *       *         unknown
	yes  call       distrusted *     *       *       *         unknown
	yes  call       *          *     *       *       2         unknown
	yes  call       idempotent yes   *       *       *         unknown
	yes  call       *          *     *       *       *         again

	yes  other      *          *     *       *       *         unknown
`

// fateValues are the values of each column of fates.
var fateValues = [][]string{
	{"no", "yes"}, {"initialize", "reads", "call", "other"}, {"writes", "idempotent", "reads", "allowed", "distrusted"}, {"no", "yes"},
	{"crash", "planned", "lost"}, {"0", "1"}, {"0", "1", "2"},
}

// Whoever wants to know whether a call is lost, repeated or refused reads the table above; it holds for every combination.
func TestFates(t *testing.T) {
	var rows [][]string
	for line := range strings.Lines(fates) {
		if cells := strings.Fields(line); len(cells) > 0 && cells[0] != "read" {
			rows = append(rows, cells)
		}
	}
	used := make([]bool, len(rows))
	tried := 0
	for c := range combinations(fateValues) {
		at := slices.IndexFunc(rows, func(row []string) bool {
			for i, value := range c {
				if row[i] != "*" && row[i] != value {
					return false
				}
			}
			return true
		})
		if at < 0 {
			t.Fatalf("no line fits %q", c)
		}
		used[at] = true
		tried++
		if got, want := fateIn(c), rows[at][len(rows[at])-1]; got != want {
			t.Errorf("%-60s %s, want %s", strings.Join(c, " "), got, want)
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("no combination needs the line %q", rows[i])
		}
	}
	t.Logf("%d combinations, %d lines", tried, len(rows))
}

// combinations yields every choice of one value of each column. The slice is the same each time.
func combinations(columns [][]string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		choice := make([]string, len(columns))
		var choose func(int) bool
		choose = func(i int) bool {
			if i == len(columns) {
				return yield(choice)
			}
			for _, value := range columns[i] {
				choice[i] = value
				if !choose(i + 1) {
					return false
				}
			}
			return true
		}
		choose(0)
	}
}

// fateIn asks about one combination.
func fateIn(combination []string) string {
	read, request, tool, asked, end := combination[0], combination[1], combination[2], combination[3], combination[4]
	line := `{"method":"tools/call","params":{"name":"t"}}`
	at := strings.Index(line, `"t"`)
	c := &call{
		method: map[string]mcp.Method{"initialize": mcp.Initialize, "reads": mcp.ResourcesRead, "call": mcp.ToolsCall, "other": mcp.Other}[request],
		line:   []byte(line), tool: jsonrpc.Span{Start: at, End: at + 3}, seq: 1, gen: 1, end: 100,
	}
	fmt.Sscan(combination[5], &c.crashes)
	fmt.Sscan(combination[6], &c.resent)
	p := &process{gen: 1, sent: 100}
	if read == "no" {
		p.undelivered = 1
	}
	if end == "lost" {
		p.ending.kind = connectionEnded
	}
	item := mcp.Item{Idempotent: tool == "idempotent" || tool == "reads" || tool == "distrusted", ReadOnly: tool == "reads" || tool == "distrusted"}
	p.shows[mcp.Tools] = mcp.Catalog{"t": item}
	f := flow{core: &core{}}
	f.opts.Distrust = tool == "distrusted"
	if tool == "allowed" {
		f.opts.RetryTools = []string{"t"}
	}
	if asked == "yes" {
		f.asks.mark = c.seq
	}
	return map[fate]string{undelivered: "undelivered", again: "again", unknown: "unknown", poisonous: "poisonous"}[f.fateOf(c, p, end == "planned")]
}

// A cancellation without an id concerns nothing, not the notification that waits for the server.
func TestACancellationOfNothing(t *testing.T) {
	w := newWorld(Options{NoTools: true})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.exit(137)
	w.takeServer()
	w.client(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`)
	w.server(`{"jsonrpc":"2.0","id":1500000001,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	if got := strings.Join(w.takeServer(), "\n"); !strings.Contains(got, "roots/list_changed") {
		t.Errorf("the server got %s", got)
	}
}
