package bridge

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A dialogue is a script: "c" and "s" are lines of the client and the server, "C" and "S" what the bridge is to send to
// them because of that, all of it and in this order; "t" lets time pass. $meta is
// the _meta of every request to a modern server; $state the requestState the client was given last.
func play(t *testing.T, mode mcp.Era, script string) {
	t.Helper()
	playOn(t, Options{Client: mode, Key: []byte(strings.Repeat("k", 32))}, nil, script)
}

// playOn plays a dialogue on a bridge with these options. Two more steps are what the keeper of the server tells: "o" that
// it has answered a request that was withdrawn, by its raw id, and "r" that no process is left that has heard of any.
func playOn(t *testing.T, opts Options, who principals, script string) {
	t.Helper()
	if who != nil {
		opts.Principal = who.of
	}
	b, now := New(opts), start
	var out Output
	var state string
	spell := strings.NewReplacer(
		"$meta", `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":`+`{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`,
		"$version", `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`)
	done := func(line int) {
		if len(out.ToServer)+len(out.ToClient) > 0 {
			t.Fatalf("line %d: the bridge said more: to server %q, to client %q", line, out.ToServer, out.ToClient)
		}
	}
	for i, step := range strings.Split(strings.TrimSpace(script), "\n") {
		step = strings.TrimSpace(step)
		if step == "" || step[0] == '#' {
			continue
		}
		text := strings.ReplaceAll(spell.Replace(strings.TrimSpace(step[1:])), "$state", state)
		switch step[0] {
		case 'S', 'C':
			said := &out.ToServer
			if step[0] == 'C' {
				said = &out.ToClient
			}
			if len(*said) == 0 {
				t.Fatalf("line %d: nothing was said, wanted %s", i+1, text)
			}
			got := string((*said)[0])
			*said = (*said)[1:]
			if s := member([]byte(got), "result", "requestState"); s != nil {
				state = strings.Trim(string(s), `"`)
				text = strings.ReplaceAll(text, "$new", state)
			}
			if got != text {
				t.Fatalf("line %d:\n got %s\nwant %s", i+1, got, text)
			}
			continue
		}
		done(i + 1)
		switch step[0] {
		case 'c':
			out = b.FromClient(who.take(text), now)
		case 's':
			out = b.FromServer([]byte(text), now)
		case 't':
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
			out = b.Tick(now)
		case 'o':
			out = b.Over([]byte(text), now)
		case 'r':
			out = b.Reborn(now)
		}
	}
	done(-1)
}
