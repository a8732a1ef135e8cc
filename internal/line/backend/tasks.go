package backend

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// tasks is work that servers continue after they have answered.
type tasks struct {
	*core

	open []task // oldest first
}

// tasksKept is how many tasks of the server are remembered.
const tasksKept = 256

// task is work that a server continues after its answer (2025-11-25). It may end with its process.
type task struct {
	id    []byte // raw
	gen   int    // process that began it
	raw   []byte // the Task object it was announced with
	token []byte // raw progress token of the call that has begun it; empty: none
}

// noteTask remembers the task that an answer announces.
func (ts *tasks) noteTask(c *call, line []byte) {
	raw := jsonrpc.FindPath(ts.env.Result.Of(line), "task").Of(ts.env.Result.Of(line))
	id := jsonrpc.Find(raw, "taskId").Of(raw)
	if id == nil {
		return
	}
	ts.open = append(ts.open, task{id: bytes.Clone(id), gen: c.gen, raw: bytes.Clone(raw), token: bytes.Clone(c.token)})
	if extra := len(ts.open) - tasksKept; extra > 0 {
		ts.open = ts.open[extra:]
	}
}

// askedTask returns the task that a client's request is about, if an earlier process began it.
func (ts *tasks) askedTask(c *call) *task {
	params := c.param.Of(c.line)
	id := jsonrpc.Find(params, "taskId").Of(params)
	for i := range ts.open {
		if t := &ts.open[i]; id != nil && jsonrpc.SameID(t.id, id) && t.gen < c.gen {
			return t
		}
	}
	return nil
}

// inspectTask handles a server's error for an unknown task. If an earlier process began it, it ended with that process,
// and the client is told so in the protocol's terms. A server that stores its tasks answers itself.
func (ts *tasks) inspectTask(c *call, line []byte) []byte {
	code := jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line))
	if ts.env.Kind != jsonrpc.ErrorResponse || code != jsonrpc.InvalidParams && code != jsonrpc.MethodNotFound {
		return line
	}
	t := ts.askedTask(c)
	if t == nil || c.method == mcp.TasksCancel {
		return line // a task that has ended cannot be cancelled: the server's answer says that
	}
	if c.method == mcp.TasksResult {
		data := outcome{Reason: reasonRestarted, Delivered: "unknown", Generation: t.gen}
		ts.flow.answer(c, jsonrpc.AppendError(nil, c.id, jsonrpc.InternalError,
			"the task ended with the server process that ran it; whether it took effect is unknown", data.raw()))
		return nil
	}
	failed := t.failed()
	ts.flow.answer(c, jsonrpc.AppendResult(nil, c.id, failed))
	ts.tell(jsonrpc.AppendNotification(nil, "notifications/tasks/status", failed))
	return nil
}

// failed is the task as it stands now.
func (t *task) failed() []byte {
	raw, err := jsonrpc.Set(nil, t.raw, []byte(`"failed"`), "status")
	if err == nil {
		raw, err = jsonrpc.Set(nil, raw, []byte(`"server restarted"`), "statusMessage")
	}
	if err != nil {
		return t.raw // not an object: unchanged
	}
	return raw
}

// reports reports whether a task sends progress under this raw token: it outlives the answer to its call.
func (ts *tasks) reports(token []byte) bool {
	return slices.ContainsFunc(ts.open, func(t task) bool { return jsonrpc.SameID(t.token, token) })
}
