package gateway

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// Limits of clients that speak over descriptors, in bytes.
const (
	// maxToServer is the longest line of a client: a Go server ends the connection at 16 MiB.
	maxToServer = 16 << 20
	// clientBehind is how much may wait for a client before its servers are not read any more.
	clientBehind = 256 << 10
)

// leaveWithin is how long servers may take to end; then they are killed. A backend's own stop steps are shorter.
const leaveWithin = 5 * time.Second

// RunnerOptions are a runner's settings.
type RunnerOptions struct {
	Gateway Options
	// Host has the options of the process, or connection, behind a link. Its Finish is the runner's own.
	Host func(l *Link) host.Options
	// In and Out are the client of a gateway that speaks stdio; the runner closes them. nil: there is none.
	In, Out *os.File
	View    string // what that client sees; "": everything
}

// Runner is the world of a [Gateway]: a loop with everything on it.
type Runner struct {
	opts    RunnerOptions
	loop    *lineloop.Loop
	gw      *Gateway
	kept    map[*Link]*kept
	past    map[string]backend.Counters // by server: of those that are not kept any more
	gate    gate
	due     time.Time // not later than the first deadline of a backend; zero: none
	quiet   quiet
	flushes bool // a flush is posted
	out     *lineloop.Sink
	endBy   time.Time // when nothing is waited for any more; zero: it is not ending
	ended   chan struct{}
}

// NewRunner prepares a gateway without servers; nothing is started yet.
func NewRunner(opts RunnerOptions) (*Runner, error) {
	loop, err := lineloop.NewLoop()
	if err != nil {
		return nil, fmt.Errorf("make event loop: %w", err)
	}
	r := &Runner{opts: opts, loop: loop, kept: map[*Link]*kept{}, past: map[string]backend.Counters{},
		gate: gate{width: max(4, 2*runtime.NumCPU()), inside: map[*kept]bool{}}, quiet: quiet{give: giveMemoryBack}, ended: make(chan struct{})}
	opts.Gateway.Single = opts.In != nil
	r.gw = New(opts.Gateway, r)
	loop.Deadline = r.deadline
	loop.OnTick = r.tick
	return r, nil
}

// Run serves until [Runner.Interrupt], or until the stdio client has closed its end.
func (r *Runner) Run() {
	runtime.LockOSThread() // the loop sleeps in the kernel; its own thread saves a hand-over at each wake-up
	defer runtime.UnlockOSThread()
	defer close(r.ended)
	if r.opts.In != nil {
		r.serveStdio()
	}
	r.loop.Run()
	for _, k := range r.kept {
		k.host.Close()
	}
}

// serveStdio registers the client's descriptors.
func (r *Runner) serveStdio() {
	var session *Session
	r.out = r.loop.AddSink(r.opts.Out, lineloop.SinkOptions{OnError: func(error) {
		session.Close(r.Now())
		r.end(false)
	}})
	behind := func() bool { return r.out.Pending() >= clientBehind }
	session = r.gw.Open(r.out, behind)
	session.view = r.opts.View
	r.read(r.opts.In, session, r.out, nil, func() { r.end(false) })
}

// read takes a client's lines from a descriptor while gate allows it, nil: always. done is called when the client has closed its end and
// has its answers, which go to out.
func (r *Runner) read(in *os.File, s *Session, out Stream, gate func() bool, done func()) *lineloop.Source {
	return r.loop.AddSource(in, lineloop.SourceOptions{
		Limit:      maxToServer,
		OnLine:     func(line []byte, _ bool) { s.Message(r.Now(), line, out) },
		OnOversize: func(head, tail []byte, n int64) { s.Oversize(r.Now(), head, tail, n, out) },
		OnEOF:      func(error) { s.CloseWhenIdle(r.Now(), supervise.AnswerGrace, done) },
		Gate:       gate,
	})
}

// Now implements [World].
func (r *Runner) Now() time.Time {
	if now := r.loop.Now(); !now.IsZero() {
		return now
	}
	return time.Now()
}

// SetServers applies a configuration. Any goroutine, also before Run.
func (r *Runner) SetServers(servers []Server, views ...View) {
	r.loop.Post(func() { r.gw.SetServers(time.Now(), servers, views...) })
}

// Warm starts every server that is not lazy. Any goroutine.
func (r *Runner) Warm() { r.loop.Post(func() { r.gw.Warm(time.Now()) }) }

// Interrupt ends the runner as SIGTERM and SIGINT do. Any goroutine.
func (r *Runner) Interrupt() { r.loop.Post(func() { r.end(true) }) }

// Ended is closed when Run has returned.
func (r *Runner) Ended() <-chan struct{} { return r.ended }

// end ends every server, and then the loop. stopped: by a signal, and nothing is waited for.
func (r *Runner) end(stopped bool) {
	if !r.endBy.IsZero() {
		return
	}
	r.endBy = time.Now().Add(leaveWithin)
	time.AfterFunc(leaveWithin, func() { r.loop.Post(r.stopIfDone) })
	for _, k := range r.kept {
		if stopped && k.opened {
			k.host.Backend.Interrupted(time.Now())
		}
	}
	r.gw.Close(time.Now())
	r.stopIfDone()
}

// stopIfDone ends the loop when no server is left and the client has read everything.
func (r *Runner) stopIfDone() {
	late := !time.Now().Before(r.endBy)
	if r.endBy.IsZero() || len(r.kept) > 0 && !late {
		return
	}
	if r.out != nil && r.out.Pending() > 0 && !late {
		time.AfterFunc(time.Millisecond, func() { r.loop.Post(r.stopIfDone) })
		return
	}
	r.loop.Stop()
}

// flushSoon flushes the outbox after the present server's call.
func (r *Runner) flushSoon() {
	if r.flushes || !r.gw.waiting() {
		return
	}
	r.flushes = true
	r.loop.Post(func() {
		r.flushes = false
		r.gw.flush()
	})
}
