package host

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// stderrLag is how long an exit waits for the last words on stderr: they are on their way already, and the reason of
// the death is among them.
const stderrLag = 50 * time.Millisecond

// server is one process with its pipes. It implements backend.Server; its methods belong to the loop's goroutine, but
// for LastStderr.
type server struct {
	inlet
	gen      int
	argv     []string
	shortcut *shortcut // the host's
	direct   bool      // without its launcher
	ready    bool
	ending   bool           // it was told to end
	starting *starting      // it is still being started; then there is neither process nor sink nor output
	process  *child.Process // as the next and the inlet's sink, nil of one that is starting or could not be started
	output   *lineloop.Source
	words    *logline.Kept             // the end of its stderr: two processes may speak at once
	spokeAt  atomic.Pointer[time.Time] // when it last wrote to its stderr
	held     func() bool               // its stdout is not being read
	marker   restart.MarkerScanner     // the reader's of its stderr
	silent   chan struct{}             // closed when its stderr has ended
	left     chan struct{}             // closed when nothing of it is left
}

func (s *server) PID() int {
	switch {
	case s.starting != nil:
		return backend.NotSpawned
	case s.process == nil:
		return 0
	}
	return s.process.PID()
}

func (s *server) Abandon() {
	if s.output != nil {
		s.output.Close()
		s.sink.Close()
	}
}

func (s *server) CloseInput() {
	s.ending = true
	if s.process != nil {
		s.sink.CloseWhenDrained()
	}
}

// Terminate and Kill fail only for a process that is gone.
func (s *server) Terminate() {
	s.ending = true
	if s.process != nil {
		_ = s.process.Terminate()
	}
}

func (s *server) Kill() {
	s.ending = true
	if s.process != nil {
		_ = s.process.Kill()
	}
}

func (s *server) Unread() (int, bool) {
	switch {
	case s.starting != nil:
		return s.pending(), true
	case s.process == nil:
		return 0, false
	}
	n, ok := s.process.Unread()
	return n + s.pending(), ok
}

// Continue fails only for a process that is gone.
func (s *server) Continue() {
	if s.process != nil {
		_ = child.Continue(s.process.PID())
	}
}

func (s *server) Vitals() backend.Vitals {
	v := backend.Vitals{Held: s.held()}
	if s.process == nil {
		return v
	}
	if at := s.spokeAt.Load(); at != nil {
		v.HeardAt = *at
	}
	if u, err := child.TreeUsage(s.process.PID()); err == nil {
		v.RSS, v.CPU, v.State, v.Known = u.RSS, u.CPU, u.State, true
	}
	return v
}

// Installing says nothing of a launcher whose server has come up before and was not seen behind it.
func (s *server) Installing() bool {
	return s.process != nil && !s.direct && !s.shortcut.hidden &&
		launcher.Installing(s.argv, s.process.PID(), s.process.Stdin(), s.process.Stdout())
}

func (s *server) LastStderr(lines int) []string { return s.words.Tail(lines) }

// WakeAt implements backend.World.
func (w *world) WakeAt(at time.Time) {
	if w.wakeAt = at; w.opts.WakeAt != nil {
		w.opts.WakeAt(at)
	}
}

// Rand implements backend.World.
func (w *world) Rand() float64 { return rand.Float64() }

// Start spawns a process and joins its pipes to the loop, in the background if another one serves meanwhile.
func (w *world) Start(l backend.Launch) (backend.Server, error) {
	h, gen := (*Host)(w), l.Gen
	switch {
	case h.opts.Join != nil:
		return h.joinServer(gen), nil
	case h.opts.Remote != nil:
		return h.connect(gen), nil
	}
	h.loop.Flush() // nobody who waits for a line is to wait for this as well
	s := &server{
		gen: gen, shortcut: &h.shortcut, words: logline.OpenKept("", logline.KeptOptions{}), held: h.client.Behind,
		silent: make(chan struct{}), left: make(chan struct{}),
	}
	var spec child.Spec
	spec.Argv, spec.Dir, spec.Env, s.direct = h.commandLine(h.environment(gen, l.Why), l.Anew)
	spec.KillMode = h.opts.KillMode
	s.argv = spec.Argv
	h.running = append(h.running, s)
	if l.Beside {
		h.startBeside(s, spec)
		return s, nil
	}
	var err error
	s.process, err = child.Start(spec, func(st child.Status) { h.gone(s, st) })
	if err != nil {
		h.unstarted(s)
		return nil, err
	}
	h.join(s)
	return s, nil
}

// unstarted forgets a process that could not be started.
func (h *Host) unstarted(s *server) {
	h.forget(s)
	if s.direct {
		h.directFailed()
	}
}

func (h *Host) forget(s backend.Server) {
	h.running = slices.DeleteFunc(h.running, func(one backend.Server) bool { return one == s })
}

// join joins the pipes of a process to the loop.
func (h *Host) join(s *server) {
	s.output = h.relay(&s.inlet, s.gen, s.process.Stdin(), s.process.Stdout(), func() {
		if !s.ending {
			h.neverReady(s) // it is killed if it stays
		}
		h.Backend.ServerClosed(h.loop.Now(), s.gen)
	})
	go h.readStderr(s)
}

// relay joins the two pipes of a server of that generation to the loop. ended is called once nothing more comes from it.
func (h *Host) relay(input *inlet, gen int, to, from *os.File, ended func()) *lineloop.Source {
	input.open(h.loop.AddSink(to, lineloop.SinkOptions{OnDrain: func() { h.Backend.Drained(h.loop.Now(), gen) }}))
	return h.loop.AddSource(from, lineloop.SourceOptions{
		Limit:      h.opts.MaxToClient,
		OnLine:     func(line []byte, whole bool) { h.Backend.ServerLine(h.loop.Now(), gen, line, whole) },
		OnOversize: func(head, tail []byte, n int64) { h.Backend.ServerOversize(h.loop.Now(), gen, head, tail, n) },
		OnEOF:      func(error) { ended() },
		Gate:       func() bool { return !h.client.Behind() },
	})
}

// gone waits for a dead process's last words and brings the news to the loop. It is called from package child.
func (h *Host) gone(s *server, st child.Status) {
	close(s.left)
	select {
	case <-s.silent:
	case <-time.After(stderrLag):
	}
	h.loop.Post(func() { h.exited(s, s.gen, st) })
}

// environment is the server's: ours, and what tells it of its life behind outlive.
func (h *Host) environment(gen int, why string) []string {
	env := h.opts.Env
	if env == nil {
		env = os.Environ()
	}
	return slices.Concat(env, []string{
		"PYTHONUTF8=1", // TP-4
		"OUTLIVE=1",
		"OUTLIVE_NAME=" + h.opts.Backend.Name,
		"OUTLIVE_GENERATION=" + strconv.Itoa(gen),
		"OUTLIVE_RESTART_REASON=" + why,
		"OUTLIVE_STATE_DIR=" + h.opts.StateDir,
	})
}

// exited brings the news of a process's end to the backend, with how much of its stdin it never took.
func (h *Host) exited(s *server, gen int, st child.Status) {
	unread := s.pending()
	if n, ok := s.process.Unread(); ok {
		unread += n
	}
	s.sink.Close()
	if !s.ending {
		h.neverReady(s)
	}
	h.forget(s)
	h.Backend.ServerExited(time.Now(), gen, backend.Exit{
		Code: st.Code, Signal: st.Signal, Signalled: st.Signalled, MaxRSS: st.MaxRSS, CPU: st.CPU, Unread: unread,
	})
}

// mostStderr is the most that is read of a process's stderr at once, in bytes.
const mostStderr = 16 << 10

// readStderr keeps and passes on what a process says, and looks for the restart marker in it (TP-1).
func (h *Host) readStderr(s *server) {
	defer close(s.silent)
	from := s.process.Stderr()
	defer from.Close()
	buf := make([]byte, 512) // most servers say little, and a gateway has hundreds of them
	for {
		s.awaitRoom(h.opts.Stderr)
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = h.opts.Stderr.Write(buf[:n]) // a Stderr accounts its own losses
			_, _ = s.words.Write(buf[:n])
			now := time.Now()
			s.spokeAt.Store(&now)
			if s.marker.Scan(buf[:n]) > 0 {
				h.loop.Post(func() { h.Backend.MarkerSeen(h.loop.Now(), s.gen) })
			}
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < mostStderr {
			buf = make([]byte, mostStderr)
		}
	}
}

// awaitRoom waits until what the process says next can be kept and passed on: the process waits then, as it would for
// the reader of its stderr without outlive. The last words of a process that is gone are not waited with: they are few, and
// the error messages need them.
func (s *server) awaitRoom(to Stderr) {
	for {
		full := to.Room()
		if full == nil {
			return
		}
		select {
		case <-full:
		case <-s.left:
			return
		}
	}
}
