package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The cast of the matrix: every client with every server, and what each of them is called in docs/COMPATIBILITY.md.

// part is a client or a server as the document names it.
type part struct {
	key   string // in clients() and castServers(), and in the names of the tests
	title string
	era   string // legacy, modern or dual
}

var castClients = []part{
	{"go", "Go SDK", "dual"},
	{"ts1", "TypeScript SDK 1.x", "legacy"},
	{"ts2-auto", "TypeScript SDK 2.x, `auto`", "dual"},
	{"ts2-modern", "TypeScript SDK 2.x, pinned to 2026-07-28", "modern"},
	{"py-auto", "Python SDK", "dual"},
	{"py-modern", "Python SDK, pinned to 2026-07-28", "modern"},
}

var castServers = []part{
	{"go", "Go SDK", "dual"},
	{"py", "Python SDK", "dual"},
	{"go-legacy", "Go SDK, legacy versions only", "legacy"},
	{"ts", "TypeScript SDK 1.x", "legacy"},
	{"ts2-modern", "TypeScript SDK 2.x, `legacy: 'reject'`", "modern"},
	{"everything", "server-everything", "legacy"},
	{"exits", "dies of a probe", "legacy"},
	{"silent", "silent on a probe", "legacy"},
}

// castServer is the server behind a key: one of the other tests', or the Go SDK's taking a probe badly.
func castServer(key string) server {
	if key != "exits" && key != "silent" {
		return servers()[key]
	}
	return server{name: key, argv: []string{tools.goserver, "-probe", key}, legacy: true, match: "-probe " + key}
}

// laneOfBoard is a way from a client to a server.
type laneOfBoard struct{ key, title string }

// lanes are both of them.
var lanes = []laneOfBoard{
	{"run", "`outlive run`"},
	{"http", "`outlive gateway`, HTTP"},
}

// cell is one client with one server over one lane.
type cell struct {
	lane           string
	client, server part
}

func (c cell) name() string { return c.lane + "/" + c.client.key + "×" + c.server.key }

// shared says whether client and server have an era in common, so that they could do without a bridge.
func (c cell) shared() bool {
	return c.client.era == "dual" || c.server.era == "dual" || c.client.era == c.server.era
}

// allCells are those of the whole board.
func allCells() []cell {
	var all []cell
	for _, lane := range lanes {
		for _, c := range castClients {
			for _, s := range castServers {
				all = append(all, cell{lane.key, c, s})
			}
		}
	}
	return all
}

// cells are those that this run tries: all, or at the door those of its table. Without outlive only those are left in which client and
// server find each other.
func cells(t *testing.T) []cell {
	t.Helper()
	all := allCells()
	if !full() {
		table, err := doorCells()
		if err != nil {
			t.Fatal(err)
		}
		all = slices.Clone(table.cells)
	}
	if direct() {
		all = slices.DeleteFunc(all, func(c cell) bool {
			return c.lane != "run" || !c.shared() || c.client.era == "dual" && (c.server.key == "exits" || c.server.key == "silent")
		})
	}
	return all
}

// open connects the cell's client to its server.
func (c cell) open(t *testing.T) (*session, *gateway) {
	t.Helper()
	srv, w := castServer(c.server.key), newWorkspace(t)
	var s *session
	var g *gateway
	if c.lane == "http" {
		g = w.listen(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "server", server: srv}), "--log-level", "debug")
		s = w.join(t, gatewayClients()[c.client.key], g.url)
	} else {
		s = w.join(t, gatewayClients()[c.client.key], w.wrap(srv.argv)...)
	}
	s.server = srv
	return s, g
}

// shut closes the cell's client, which must not have been troubled, and sees that nothing is left.
func (c cell) shut(t *testing.T, s *session, g *gateway) {
	t.Helper()
	if direct() && c.server.key == "everything" && s.subscribed {
		s.call(t, "toggle-subscriber-updates", map[string]any{}) // its timer keeps the server alive beyond the end of stdin
	}
	if s.subscribed {
		s.do(t, step{"op": "unsubscribe", "uri": vocabularyOf(c).uri})
	}
	s.do(t, step{"op": "close"})
	select {
	case <-s.driver.exited():
	case <-time.After(patience):
		t.Error("the client does not end")
	}
	for _, e := range s.seen(0) {
		if trouble(e, c.server.key == "everything") {
			t.Errorf("the client noticed: %s", e)
		}
	}
	if g != nil {
		g.stop(t)
	}
	s.noneLeft(t)
}

// trouble says whether a client would have been better off without the event. moving: the server's lists do change.
func trouble(e event, moving bool) bool {
	switch {
	case strings.Contains(e.Message, "progress notification for an unknown token"):
		return false // the last progress comes just before the answer, and this client handles the answer first
	case strings.HasSuffix(e.Message, "Not connected"):
		return false // the server asked for something while the client was closing
	case direct() && strings.Contains(e.Message, "unknown message ID"):
		return false // the Go SDK's server answers cancelled requests; outlive drops that
	case strings.HasSuffix(e.Method, "list_changed"):
		return !moving
	}
	return e.Event == "error" || e.Event == "closed" || e.Event == "subscription-ended"
}
