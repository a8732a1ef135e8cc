package backend

import (
	"bytes"
	"log/slog"
	"slices"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// Replay is a tool call that brings a new process to the state its predecessor was in, such as a login.
type Replay struct {
	Tool      string
	Arguments []byte // raw JSON object; nil: those of the client's last call of that tool that succeeded
}

// noteReplay keeps a call of the client that is to be repeated to new processes; ok says that it succeeded.
func (b *Backend) noteReplay(c *call, result []byte) {
	name, _ := jsonrpc.Unquote(c.tool.Of(c.line))
	i := slices.IndexFunc(b.opts.Replays, func(r Replay) bool { return r.Tool == name && r.Arguments == nil })
	if i < 0 || string(jsonrpc.Find(result, "isError").Of(result)) == "true" {
		return
	}
	if b.replays == nil {
		b.replays = make([][]byte, len(b.opts.Replays))
	}
	params := c.param.Of(c.line)
	b.replays[i] = bytes.Clone(jsonrpc.Find(params, "arguments").Of(params))
	if b.replays[i] == nil {
		b.replays[i] = []byte("{}")
	}
}

// restored goes on with a process that knows the client's handshake and wishes: what is left of its predecessor's state
// are the calls to be repeated, one after the other.
func (b *Backend) restored(p *process) {
	if !p.restored {
		p.restored = true
		b.repeat(p, 0)
	}
}

func (b *Backend) repeat(p *process, i int) {
	for ; i < len(b.opts.Replays); i++ {
		r := b.opts.Replays[i]
		arguments := r.Arguments
		if arguments == nil && b.replays != nil {
			arguments = b.replays[i]
		}
		if arguments == nil {
			continue // the client has not made that call yet
		}
		b.ask(p, func(id []byte) []byte {
			return mcp.CallLine(id, r.Tool, arguments, b.privateMeta())
		}, func(line []byte) {
			b.repeated(p, r, line)
			b.repeat(p, i+1)
		})
		return
	}
	b.cameUp(p)
}

// repeated tells how a repeated call went. A failure does not keep the process from serving: the client will see for
// itself what is missing.
func (b *Backend) repeated(p *process, r Replay, line []byte) {
	result := b.env.Result.Of(line)
	if b.env.Kind == jsonrpc.Response && string(jsonrpc.Find(result, "isError").Of(result)) != "true" {
		b.emitOf(p, event.CallReplayed, slog.LevelInfo, "Call of '"+r.Tool+"' repeated to the new server", slog.String(event.KeyTool, r.Tool))
		return
	}
	b.emitOf(p, event.CallReplayed, slog.LevelWarn, "Call of '"+r.Tool+"', repeated to the new server, failed: "+excerpt(line),
		slog.String(event.KeyTool, r.Tool), slog.String(event.KeyError, excerpt(line)))
}
