package host

import (
	"context"
	"os"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// joinedServer is a server that others use, too, reached by two pipes. Its backend sees it start, say lines and end like a
// process. Its methods belong to the loop's goroutine.
type joinedServer struct {
	inlet
	host    *Host
	gen     int
	cancel  context.CancelFunc // ends the attempt to connect
	output  *lineloop.Source   // nil: there is no connection yet
	closing bool               // its input is closed, or will be
	over    bool               // its end was told
}

// joinServer connects in place of a process, in the background.
func (h *Host) joinServer(gen int) backend.Server {
	ctx, cancel := context.WithCancel(context.Background())
	j := &joinedServer{host: h, gen: gen, cancel: cancel}
	h.running = append(h.running, j)
	go func() {
		in, out, err := h.opts.Join(ctx)
		h.loop.Post(func() { j.connected(in, out, err) })
	}()
	return j
}

// connected begins to relay.
func (j *joinedServer) connected(in, out *os.File, err error) {
	switch {
	case j.over && err == nil:
		_, _ = in.Close(), out.Close() // nothing was said
		return
	case j.over:
		return
	case err != nil:
		j.end(err.Error())
		return
	}
	j.output = j.host.relay(&j.inlet, j.gen, out, in, func() { j.end("the daemon of shared servers has closed the connection") })
	if j.closing {
		j.sink.CloseWhenDrained()
	}
}

// end brings the end of the connection to the backend, once. What was written counts as begun, since nobody can tell how
// much of it the daemon has passed on.
func (j *joinedServer) end(why string) {
	if j.over {
		return
	}
	j.over = true
	j.cancel()
	unread := j.pending()
	if j.sink != nil {
		j.sink.Close()
		j.output.Close()
	}
	if j.closing {
		why = ""
	}
	j.host.lost(j, j.gen, unread, why)
}

func (j *joinedServer) PID() int { return 0 }

func (j *joinedServer) CloseInput() {
	j.closing = true
	if j.sink != nil {
		j.sink.CloseWhenDrained()
	}
}

// Terminate and Kill leave the server: it belongs to others, too.
func (j *joinedServer) Terminate() { j.Kill() }

func (j *joinedServer) Kill() {
	j.closing = true
	j.cancel()
	j.host.loop.Post(func() { j.end("") })
}

func (j *joinedServer) Abandon()  {} // nothing comes after the end
func (j *joinedServer) Continue() {} // it cannot be stopped

// Unread counts what has not been written.
func (j *joinedServer) Unread() (n int, known bool) { return j.pending(), true }

func (j *joinedServer) Vitals() backend.Vitals { return backend.Vitals{Held: j.host.client.Behind()} }

// Installing leaves it to the daemon how long it waits for the server.
func (j *joinedServer) Installing() bool { return launcher.Installs(j.host.opts.Backend.Command) != "" }

func (j *joinedServer) LastStderr(int) []string { return nil }
