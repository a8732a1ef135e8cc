package bridge

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// carrier is a bridge with who keeps its server. It carries the calls of the requests that the server works on, and gives each back with
// the first answer. It forgets a request that the bridge cancels. What the client says while the bridge greets the server waits here.
type carrier struct {
	*Bridge
	calls map[string]*Call // by raw id of the request
	held  [][]byte         // what waits
}

func carried(b *Bridge) *carrier { return &carrier{Bridge: b, calls: map[string]*Call{}} }

// FromClient takes any line of the client. What waits, nobody begins once it is cancelled.
func (k *carrier) FromClient(line []byte, now time.Time) Output {
	if id := member(line, "params", "requestId"); id != nil && k.Greeting() {
		i := slices.IndexFunc(k.held, func(one []byte) bool { return bytes.Equal(member(one, "id"), id) })
		if i >= 0 {
			k.held = slices.Delete(k.held, i, i+1)
			return Output{}
		}
	}
	k.held = append(k.held, bytes.Clone(line))
	return k.carry(Output{}, now)
}
func (k *carrier) Over(id []byte, now time.Time) Output { return k.carry(k.Bridge.Over(id, now), now) }
func (k *carrier) Reborn(now time.Time) Output          { return k.carry(k.Bridge.Reborn(now), now) }
func (k *carrier) Tick(now time.Time) Output            { return k.carry(k.Bridge.Tick(now), now) }

// FromServer takes any line of the server.
func (k *carrier) FromServer(line []byte, now time.Time) Output {
	var env jsonrpc.Envelope
	if env.Scan(line) != nil || env.Kind != jsonrpc.Response && env.Kind != jsonrpc.ErrorResponse {
		return k.carry(k.Bridge.FromServer(line, now), now)
	}
	if c := k.forget(env.ID.Of(line)); c != nil {
		return k.carry(k.Answered(c, line, nil, now), now)
	}
	return Output{}
}

// forget returns the call of a request by its raw id, and forgets it; nil: there is none.
func (k *carrier) forget(id []byte) *Call {
	for wire, c := range k.calls {
		if jsonrpc.SameID([]byte(wire), id) {
			delete(k.calls, wire)
			return c
		}
	}
	return nil
}

// carry takes what the bridge says, and tells it what waits, unless it greets the server. What it then says is in the output, too.
func (k *carrier) carry(out Output, now time.Time) Output {
	k.keep(out)
	if out.Refusal != nil {
		for _, line := range k.held {
			if id := member(line, "id"); id != nil {
				out.ToClient = append(out.ToClient, jsonrpc.AppendErrorObject(nil, id, out.Refusal))
			}
		}
		k.held = nil
	}
	for len(k.held) > 0 && !k.Greeting() {
		line := k.held[0]
		k.held = k.held[1:]
		more := k.Bridge.FromClient(line, now)
		if more.Again {
			k.held = append([][]byte{line}, k.held...)
		}
		k.keep(more)
		out.ToServer, out.ToClient = append(out.ToServer, more.ToServer...), append(out.ToClient, more.ToClient...)
	}
	return out
}

// keep notes what the server is asked, and what is withdrawn.
func (k *carrier) keep(out Output) {
	for _, m := range out.ToServer {
		if m.Of != nil {
			k.calls[string(member(m.Line, "id"))] = m.Of
		} else if mcp.Lookup(member(m.Line, "method")) == mcp.NoteCancelled {
			k.forget(member(m.Line, "params", "requestId"))
		}
	}
}

// String is the line, as a test that fails shows it.
func (m Message) String() string { return string(m.Line) }

// lines are the lines of messages.
func lines(of []Message) (out [][]byte) {
	for _, m := range of {
		out = append(out, m.Line)
	}
	return out
}

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
	b, now := carried(New(opts)), start
	var toServer, toClient [][]byte
	var state string
	spell := strings.NewReplacer(
		"$meta", `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":`+`{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}`,
		"$version", `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`)
	done := func(line int) {
		if len(toServer)+len(toClient) > 0 {
			t.Fatalf("line %d: the bridge said more: to server %q, to client %q", line, toServer, toClient)
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
			said := &toServer
			if step[0] == 'C' {
				said = &toClient
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
		var out Output
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
		toServer, toClient = lines(out.ToServer), out.ToClient
	}
	done(-1)
}
