package streamhttp

import (
	"net/http"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// eraOf is the era of a POST: by its _meta first, then by its version header. A client that falls back from the modern
// era may keep naming its newest version in initialize.
func eraOf(r *http.Request, line []byte, e *jsonrpc.Envelope) mcp.Era {
	if e.Kind == jsonrpc.Batch {
		return mcp.Legacy
	}
	if meta := e.Meta.Of(line); meta != nil && jsonrpc.Find(meta, mcp.MetaProtocolVersion).Present() {
		return mcp.Modern
	}
	method := mcp.Lookup(e.Method.Of(line))
	version := r.Header.Get(headerVersion)
	switch {
	case method == mcp.Initialize || mcp.IsLegacy(version):
		return mcp.Legacy
	case version == mcp.ModernVersion, r.Header.Get(headerSession) == "" && (version != "" || method == mcp.Discover):
		return mcp.Modern
	}
	return mcp.Legacy
}

// postModern handles one message in a session of its own.
func (f *Front) postModern(w http.ResponseWriter, r *http.Request, who caller, line []byte, e *jsonrpc.Envelope) {
	var id []byte
	switch e.Kind {
	case jsonrpc.Request:
		id = e.ID.Of(line)
		if no := f.validate(r, who.View, line, e); no.status != 0 {
			refuse(w, id, no)
			return
		}
		var here bool
		if line, here = f.goOn(w, r, who, line, e); !here {
			return
		}
		id = e.ID.Of(line)
	case jsonrpc.Notification:
	default:
		refuse(w, nil, refusal{status: http.StatusBadRequest, text: "only requests and notifications are sent to a server of " + mcp.ModernVersion})
		return
	}
	session := f.hub.Open(who.peer())
	if session == nil {
		refuse(w, id, refusal{status: http.StatusServiceUnavailable, text: "not now"})
		return
	}
	defer session.Close()
	if e.Kind == jsonrpc.Notification {
		session.Message(line, nil)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	alone := &streamStore{maxQueue: f.opts.QueueBytes}
	p := reply{front: f, w: w, r: r, id: id, over: f.stop}
	p.stream, p.reader = alone.newStream(1, nil)
	if f.rounds != nil {
		p.stream.mark = f.rounds.mark
	}
	if mcp.Lookup(e.Method.Of(line)) == mcp.Listen {
		p.drain, p.ends, p.replaced = f.drain.done(), who.Expires, who.replaced
	}
	p.tell("request read")
	session.Message(line, p.stream)
	p.given = true
	p.tell("request handed on")
	p.run()
	p.tell("reply over")
}

// validate checks a request's metadata and headers (2026-07-28, Server Validation). A zero status means accepted.
func (f *Front) validate(r *http.Request, view string, line []byte, e *jsonrpc.Envelope) refusal {
	meta := e.Meta.Of(line)
	version := jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
	switch {
	case !jsonrpc.IsObject(meta) || !jsonrpc.IsString(version):
		return invalidParams("_meta must have " + mcp.MetaProtocolVersion)
	case !jsonrpc.IsObject(jsonrpc.Find(meta, mcp.MetaClientCapabilities).Of(meta)):
		return invalidParams("_meta must have " + mcp.MetaClientCapabilities)
	}
	if no := checkHeader(r, headerVersion, version); no.status != 0 {
		return no
	}
	if !mcp.IsModern(version) {
		return refusal{status: http.StatusBadRequest, code: mcp.CodeVersion, text: "Unsupported protocol version", data: mcp.UnsupportedVersion(version)}
	}
	if no := checkHeader(r, headerMethod, e.Method.Of(line)); no.status != 0 {
		return no
	}
	switch mcp.Lookup(e.Method.Of(line)) {
	case mcp.ToolsCall:
		return f.checkCall(r, view, line, e)
	case mcp.PromptsGet:
		return checkName(r, e.Name.Of(line), "params.name")
	case mcp.ResourcesRead:
		return checkName(r, e.URI.Of(line), "params.uri")
	case mcp.TasksGet, mcp.TasksUpdate, mcp.TasksCancel:
		if params := e.Params.Of(line); len(r.Header[headerName]) > 0 { // it need not be there (SEP-2663)
			return checkName(r, jsonrpc.Find(params, "taskId").Of(params), "params.taskId")
		}
	}
	return refusal{}
}

func invalidParams(text string) refusal {
	return refusal{status: http.StatusBadRequest, code: jsonrpc.InvalidParams, text: "Invalid params: " + text}
}
