package host

import (
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/remote"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// remoteServer is a connection to a server that is not a process of ours, as its backend sees it: it is started, says lines and
// ends like one. Its methods belong to the loop's goroutine.
type remoteServer struct {
	conn    *remote.Connection
	words   *logline.Kept             // what a process would have said on stderr
	spokeAt atomic.Pointer[time.Time] // when that was last written to
	login   func() string             // what the user is asked to do just now; "": nothing
	held    bool                      // it is not being read, because the client is behind
}

// heldLook is how often it is looked whether a client that was behind has caught up.
const heldLook = 20 * time.Millisecond

// connect opens a connection in place of a process.
func (h *Host) connect(gen int) backend.Server {
	e := &remoteServer{words: logline.OpenKept("", logline.KeptOptions{}), login: h.opts.Remote.OAuth.Waiting}
	opts := *h.opts.Remote
	opts.MaxMessage = h.opts.MaxToClient
	opts.Log = func(line string) {
		text := []byte(line + "\n")
		_, _ = h.opts.Stderr.Write(text) // a Stderr accounts its own losses
		_, _ = e.words.Write(text)
		now := time.Now()
		e.spokeAt.Store(&now)
	}
	h.running = append(h.running, e)
	e.conn = remote.Open(opts, remote.Events{
		Line: func(line []byte) {
			h.loop.Post(func() {
				h.Backend.ServerLine(h.loop.Now(), gen, line, true)
				if !e.held {
					h.holdIfBehind(e)
				}
			})
		},
		Repeat: func(id []byte, m mcp.Method, why string, reply func(bool)) {
			h.loop.Post(func() { reply(h.Backend.MayRepeat(h.loop.Now(), gen, id, m, why)) })
		},
		End: func(err error) {
			why := ""
			if err != nil {
				why = err.Error()
			}
			h.loop.Post(func() { h.lost(e, gen, e.conn.Pending(), why) })
		},
	})
	return e
}

// holdIfBehind stops reading from e for as long as the client does not take what is there.
func (h *Host) holdIfBehind(e *remoteServer) {
	behind := h.client.Behind()
	if behind != e.held {
		e.held = behind
		e.conn.Hold(behind)
	}
	if behind {
		time.AfterFunc(heldLook, func() { h.loop.Post(func() { h.holdIfBehind(e) }) })
	}
}

// lost brings the end of a connection to the backend; why is "" if it was to end.
func (h *Host) lost(s backend.Server, gen, unread int, why string) {
	h.forget(s)
	exit := backend.Exit{Unread: unread, Connection: true, Why: why}
	if why != "" {
		exit.Code = 1
	}
	now := time.Now()
	h.Backend.ServerExited(now, gen, exit)
	h.Backend.ServerClosed(now, gen)
}

func (e *remoteServer) PID() int            { return 0 }
func (e *remoteServer) Forward(line []byte) { e.conn.Send(line) }
func (e *remoteServer) Send(line []byte)    { e.conn.Send(line) }
func (e *remoteServer) Backlog() int        { return 0 }
func (e *remoteServer) CloseInput()         { e.conn.Close() }
func (e *remoteServer) Terminate()          { e.conn.Close() }
func (e *remoteServer) Kill()               { e.conn.Kill() }
func (e *remoteServer) Abandon()            {} // nothing comes after the end
func (e *remoteServer) Continue()           {} // it cannot be stopped

func (e *remoteServer) Unread() (int, bool) { return e.conn.Pending(), true }

func (e *remoteServer) Vitals() backend.Vitals {
	v := backend.Vitals{Trouble: e.conn.Trouble(), Login: e.login()}
	if at := e.spokeAt.Load(); at != nil {
		v.HeardAt = *at
	}
	return v
}

func (e *remoteServer) Installing() bool { return false }

func (e *remoteServer) LastStderr(lines int) []string { return e.words.Tail(lines) }
