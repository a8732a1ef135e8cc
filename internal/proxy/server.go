package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/restart"
	"github.com/outlive-mcp/outlive/internal/wire"
)

// stderrLag is how long an exit waits for the last words on stderr: they are on their way already, and the reason of
// the death is among them.
const stderrLag = 50 * time.Millisecond

// lastWaitFor is how long the end waits for a client that does not read the last answers.
const lastWaitFor = time.Second

// server is the running process with its pipes; the zero value: none.
type server struct {
	process running
	input   *wire.Sink
	output  *wire.Source
}

// running is a process that may not exist.
type running struct{ *child.Process }

func (r running) terminate() {
	if r.Process != nil {
		_ = r.Process.Terminate() // an error means that it is gone
	}
}

func (r running) kill() {
	if r.Process != nil {
		_ = r.Process.Kill() // likewise
	}
}

func (r running) unread() (int, bool) {
	if r.Process == nil {
		return 0, false
	}
	return r.Process.Unread()
}

// start spawns process gen and joins its pipes to the loop.
func (p *Proxy) start(gen int, why string) (int, error) {
	words := make(chan struct{}) // closed when its stderr has ended
	process, err := child.Start(child.Spec{
		Argv: p.opts.Backend.Command, Dir: p.opts.Dir, Env: p.environment(gen, why),
	}, func(s child.Status) {
		select {
		case <-words:
		case <-time.After(stderrLag):
		}
		p.loop.Post(func() { p.exited(gen, s) })
	})
	if err != nil {
		return 0, err
	}
	p.server = server{process: running{process}}
	p.server.input = p.loop.AddSink(process.Stdin(), wire.SinkOptions{
		OnDrain: func() { p.backend.Drained(p.loop.Now()) },
	})
	p.server.output = p.loop.AddSource(process.Stdout(), wire.SourceOptions{
		Limit:  p.opts.MaxToClient,
		OnLine: func(line []byte, whole bool) { p.backend.ServerLine(p.loop.Now(), gen, line, whole) },
		OnOversize: func(head, tail []byte, n int64) {
			p.backend.ServerOversize(p.loop.Now(), gen, head, tail, n)
		},
		OnEOF: func(error) { p.backend.ServerClosed(p.loop.Now(), gen) },
		Gate:  func() bool { return p.client.Pending() < clientBehind },
	})
	go p.readStderr(process.Stderr(), gen, words)
	return process.PID(), nil
}

// environment is the server's: ours, and what tells it of its life behind outlive.
func (p *Proxy) environment(gen int, why string) []string {
	env := p.opts.Env
	if env == nil {
		env = os.Environ()
	}
	return append(env[:len(env):len(env)],
		"PYTHONUTF8=1", // S3 "Layer 2"
		"OUTLIVE=1",
		"OUTLIVE_NAME="+p.opts.Backend.Name,
		"OUTLIVE_GENERATION="+strconv.Itoa(gen),
		"OUTLIVE_RESTART_REASON="+why,
		"OUTLIVE_STATE_DIR="+p.opts.StateDir,
	)
}

// exited brings the news of a process's end to the backend, with how much of its stdin it never took.
func (p *Proxy) exited(gen int, s child.Status) {
	unread := p.server.input.Pending()
	if n, ok := p.server.process.unread(); ok {
		unread += n
	}
	p.server.input.Close()
	p.backend.ServerExited(time.Now(), gen, backend.Exit{
		Code: s.Code, Signal: s.Signal, Signalled: s.Signalled, MaxRSS: s.MaxRSS, CPU: s.CPU, Unread: unread,
	})
}

// readStderr keeps and passes on what process gen says, and looks for the restart marker in it (S3).
func (p *Proxy) readStderr(from io.ReadCloser, gen int, ended chan<- struct{}) {
	defer close(ended)
	defer from.Close()
	var marker restart.MarkerScanner
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = p.opts.Stderr.Write(buf[:n]) // a Stderr accounts its own losses
			if marker.Scan(buf[:n]) > 0 {
				p.loop.Post(func() { p.backend.MarkerSeen(p.loop.Now(), gen) })
			}
		}
		if err != nil {
			return
		}
	}
}

// world is the proxy as its backend sees it.
type world Proxy

func (w *world) ForwardToClient(line []byte) { w.client.Forward(line) }
func (w *world) SendToClient(line []byte)    { w.client.Send(line) }
func (w *world) ForwardToServer(line []byte) { w.server.input.Forward(line) }
func (w *world) SendToServer(line []byte)    { w.server.input.Send(line) }
func (w *world) Backlog() int                { return w.server.input.Refused() }

func (w *world) Keep(line []byte) (*wire.Hold, []byte) { return w.loop.Keep(line) }
func (w *world) Passed(line []byte, n int)             { w.loop.DropBehind(line, n) }

func (w *world) Start(gen int, why string) (int, error) { return (*Proxy)(w).start(gen, why) }

func (w *world) CloseInput() { w.server.input.CloseWhenDrained() }
func (w *world) Terminate()  { w.server.process.terminate() }
func (w *world) Kill()       { w.server.process.kill() }
func (w *world) Abandon()    { w.server.output.Close() }

func (w *world) Unread() (int, bool) {
	n, ok := w.server.process.unread()
	if !ok {
		return 0, false // perhaps there never was a process
	}
	return n + w.server.input.Pending(), ok
}

func (w *world) Rand() float64 { return rand.Float64() }

// Finish ends the loop as soon as the client has taken everything, or lets us wait too long for it.
func (w *world) Finish(code int) {
	w.code = code
	w.lastWait = time.Now().Add(lastWaitFor)
	w.loop.Post((*Proxy)(w).stopWhenWritten)
}

func (p *Proxy) stopWhenWritten() {
	if p.client.Pending() == 0 || p.clientGone || time.Now().After(p.lastWait) {
		p.loop.Stop()
		return
	}
	time.AfterFunc(time.Millisecond, func() { p.loop.Post(p.stopWhenWritten) })
}

// Noise writes the line to the server's stderr, where it should have gone, with a prefix that tells whence it came.
func (w *world) Noise(line []byte) {
	text := append([]byte("[stdout] "), line...)
	_, _ = w.opts.Stderr.Write(append(text, '\n')) // a Stderr accounts its own losses
}

func (w *world) LastStderr(lines int) []string { return w.opts.Stderr.Tail(lines) }

func (w *world) MarkerPath() string { return w.opts.MarkerPath }

func (w *world) WriteMarker(m restart.MarkerRecord) error {
	if err := restart.WriteMarker(w.opts.MarkerPath, m); err != nil {
		return fmt.Errorf("write restart marker: %w", err)
	}
	return nil
}

func (w *world) ReadMarker() (restart.MarkerRecord, error) {
	return restart.ReadMarker(w.opts.MarkerPath)
}

func (w *world) Remember(k backend.Knowledge) {
	if w.opts.Remember != nil {
		w.opts.Remember(k)
	}
}
