package host

import (
	"bytes"
	"context"
	"os"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// joinedServer is a server that others use, too, reached by two pipes. Its backend sees it start, say lines and end like a
// process. Its methods belong to the loop's goroutine.
type joinedServer struct {
	host    *Host
	gen     int
	cancel  context.CancelFunc // ends the attempt to connect
	waiting [][]byte           // what was sent before there was a connection
	input   *lineloop.Sink     // as the next, nil: there is no connection yet
	output  *lineloop.Source
	closing bool // its input is closed, or will be
	over    bool // its end was told
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
	j.input, j.output = j.host.relay(j.gen, out, in, func() { j.end("the daemon of shared servers has closed the connection") })
	for _, line := range j.waiting {
		j.input.Send(line)
	}
	j.waiting = nil
	if j.closing {
		j.input.CloseWhenDrained()
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
	unread, _ := j.Unread()
	if j.input != nil {
		j.input.Close()
		j.output.Close()
	}
	if j.closing {
		why = ""
	}
	j.host.lost(j, j.gen, unread, why)
}

func (j *joinedServer) PID() int { return 0 }

func (j *joinedServer) Forward(line []byte) {
	if j.input == nil {
		j.waiting = append(j.waiting, bytes.Clone(line))
		return
	}
	j.input.Forward(line)
}

func (j *joinedServer) Send(line []byte) {
	if j.input == nil {
		j.waiting = append(j.waiting, bytes.Clone(line))
		return
	}
	j.input.Send(line)
}

func (j *joinedServer) Backlog() int {
	if j.input == nil {
		return 0
	}
	return j.input.Refused()
}

func (j *joinedServer) CloseInput() {
	j.closing = true
	if j.input != nil {
		j.input.CloseWhenDrained()
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
func (j *joinedServer) Unread() (n int, known bool) {
	for _, line := range j.waiting {
		n += len(line) + 1
	}
	if j.input != nil {
		n += j.input.Pending()
	}
	return n, true
}

func (j *joinedServer) Vitals() backend.Vitals { return backend.Vitals{Held: j.host.client.Behind()} }

// Installing leaves it to the daemon how long it waits for the server.
func (j *joinedServer) Installing() bool { return launcher.Installs(j.host.opts.Backend.Command) != "" }

func (j *joinedServer) LastStderr(int) []string { return nil }
