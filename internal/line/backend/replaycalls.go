package backend

import (
	"bytes"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Replay is a tool call that restores a new process to its predecessor's state, such as a login.
type Replay struct {
	Tool      string
	Arguments []byte // raw JSON object; nil: those of the client's last call of that tool that succeeded
}

// noteReplay stores a call of the client that will be repeated to new processes; ok says that it succeeded.
func (rp *replay) noteReplay(c *call, result []byte) {
	name, _ := jsonrpc.Unquote(c.tool.Of(c.line))
	i := slices.IndexFunc(rp.opts.Replays, func(r Replay) bool { return r.Tool == name && r.Arguments == nil })
	if i < 0 || string(jsonrpc.Find(result, "isError").Of(result)) == "true" {
		return
	}
	if rp.noted == nil {
		rp.noted = map[string][]byte{}
	}
	params := c.param.Of(c.line)
	arguments := bytes.Clone(jsonrpc.Find(params, "arguments").Of(params))
	if arguments == nil {
		arguments = []byte("{}")
	}
	rp.noted[name] = arguments
	for _, p := range rp.spares.without(c, (*process).answered) {
		rp.repeatOne(p, rp.opts.Replays[i], arguments, func() {})
	}
}

// restored continues with a process that has the client's handshake and settings: the calls to be repeated follow, one
// after the other.
func (rp *replay) restored(p *process) {
	p.pendingSettings, p.settingsBy = 0, time.Time{}
	rp.repeat(p, 0)
}

func (rp *replay) repeat(p *process, i int) {
	for ; i < len(rp.opts.Replays); i++ {
		r := rp.opts.Replays[i]
		arguments := r.Arguments
		if arguments == nil {
			arguments = rp.noted[r.Tool]
		}
		if arguments == nil {
			continue // the client has not made that call yet
		}
		rp.repeatOne(p, r, arguments, func() { rp.repeat(p, i+1) })
		return
	}
	rp.cameUp(p)
}

// repeatOne repeats one call to a process, and goes on when it is answered.
func (rp *replay) repeatOne(p *process, r Replay, arguments []byte, next func()) {
	rp.questions.ask(p, func(id []byte) []byte {
		return mcp.CallLine(id, r.Tool, arguments, rp.privateMeta())
	}, func(line []byte) {
		rp.repeated(p, r, line)
		next()
	})
}

// repeated reports the result of a repeated call. After a failure the process serves nevertheless.
func (rp *replay) repeated(p *process, r Replay, line []byte) {
	result := rp.env.Result.Of(line)
	if rp.env.Kind == jsonrpc.Response && string(jsonrpc.Find(result, "isError").Of(result)) != "true" {
		rp.emitOf(p, event.CallReplayed, slog.LevelInfo, "Call of '"+r.Tool+"' repeated to the new server", slog.String(event.KeyTool, r.Tool))
		return
	}
	rp.emitOf(p, event.CallReplayed, slog.LevelWarn, "Call of '"+r.Tool+"', repeated to the new server, failed: "+excerpt(line),
		slog.String(event.KeyTool, r.Tool), slog.String(event.KeyError, excerpt(line)))
}
