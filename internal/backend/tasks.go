package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// tasksKept is how many tasks of the server are remembered.
const tasksKept = 256

// task is work that a server goes on with after it has answered (2025-11-25). It may end with its process.
type task struct {
	id  []byte // raw
	gen int    // process that began it
	raw []byte // the Task object it was announced with
}

// noteTask remembers the task that an answer announces.
func (b *Backend) noteTask(c *call, line []byte) {
	raw := jsonrpc.FindPath(b.env.Result.Of(line), "task").Of(b.env.Result.Of(line))
	id := jsonrpc.Find(raw, "taskId").Of(raw)
	if id == nil {
		return
	}
	b.tasks = append(b.tasks, task{id: bytes.Clone(id), gen: c.gen, raw: bytes.Clone(raw)})
	if extra := len(b.tasks) - tasksKept; extra > 0 {
		b.tasks = b.tasks[extra:]
	}
}

// askedTask returns the task that a request of the client is about, if an earlier process began it.
func (b *Backend) askedTask(c *call) *task {
	params := c.param.Of(c.line)
	id := jsonrpc.Find(params, "taskId").Of(params)
	for i := range b.tasks {
		if t := &b.tasks[i]; id != nil && jsonrpc.SameID(t.id, id) && t.gen < c.gen {
			return t
		}
	}
	return nil
}

// inspectTask looks at a server's refusal to know a task. If an earlier process began it, it ended with that process, and
// the client is told so in the words of the protocol; a server that keeps its tasks knows it and answers for itself.
func (b *Backend) inspectTask(c *call, line []byte) []byte {
	code := jsonrpc.FindPath(line, "error", "code").Of(line)
	if b.env.Kind != jsonrpc.ErrorResponse || string(code) != "-32602" && string(code) != "-32601" {
		return line
	}
	t := b.askedTask(c)
	if t == nil || c.method == mcp.TasksCancel {
		return line // what has ended cannot be cancelled: the server's own answer says just that
	}
	if c.method == mcp.TasksResult {
		data := outcome{Reason: reasonRestarted, Delivered: "unknown", Generation: t.gen}
		b.answer(c, jsonrpc.AppendError(nil, c.id.raw, jsonrpc.InternalError,
			"the task ended with the server process that ran it; whether it took effect is unknown", data.raw()))
		return nil
	}
	failed := t.failed()
	b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, failed))
	b.world.SendToClient(jsonrpc.AppendNotification(nil, "notifications/tasks/status", failed))
	return nil
}

// failed is the task as it stands now.
func (t *task) failed() []byte {
	raw, err := jsonrpc.Set(nil, t.raw, []byte(`"failed"`), "status")
	if err == nil {
		raw, err = jsonrpc.Set(nil, raw, []byte(`"server restarted"`), "statusMessage")
	}
	if err != nil {
		return t.raw // no object after all: said as it was
	}
	return raw
}
