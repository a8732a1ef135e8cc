package backend

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// fakeWorld records what a backend does to the world; nothing happens by itself.
type fakeWorld struct {
	b        *Backend
	now      time.Time
	toClient []string
	toServer []string
	acts     []string // start 0, term, kill, close, finish 0 …
	gen      int      // of the process that lines and happenings are about: the one started last, or the one of "as"
	unread   int
	canCount bool
	installs bool // the process is a launcher that installs
	backlog  int
	vitals   Vitals
	failNext error
	stderr   []string
	noise    []string
	marker   *restart.MarkerRecord
	learned  []Knowledge
	events   []event.Event
	wakeAt   time.Time
}

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newWorld(opts Options) *fakeWorld {
	w := &fakeWorld{now: epoch, canCount: true}
	if opts.Name == "" {
		opts.Name, opts.Command = "srv", []string{"srv"}
	}
	w.b = New(opts, w, w)
	return w
}

func (w *fakeWorld) ForwardToClient(line []byte) { w.toClient = append(w.toClient, string(line)) }
func (w *fakeWorld) SendToClient(line []byte)    { w.toClient = append(w.toClient, string(line)) }
func (w *fakeWorld) Noise(line []byte)           { w.noise = append(w.noise, string(line)) }
func (w *fakeWorld) Flush()                      {}

func (w *fakeWorld) Keep(line []byte) (*lineloop.Hold, []byte) {
	h := lineloop.HoldCopy(line)
	return h, h.Bytes
}

func (w *fakeWorld) Finish(code int)           { w.acts = append(w.acts, fmt.Sprintf("finish %d", code)) }
func (w *fakeWorld) MarkerPath() string        { return "marker" }
func (w *fakeWorld) Remember(_, now Knowledge) { w.learned = append(w.learned, now) }
func (w *fakeWorld) Rand() float64             { return 0 }
func (w *fakeWorld) WakeAt(at time.Time)       { w.wakeAt = at }
func (w *fakeWorld) Emit(e event.Event)        { w.events = append(w.events, e) }

func (w *fakeWorld) Start(l Launch) (Server, error) {
	gen := l.Gen
	if err := w.failNext; err != nil {
		w.failNext = nil
		return nil, err
	}
	w.gen = gen
	w.unread = 0
	w.acts = append(w.acts, fmt.Sprintf("start %d", gen))
	return &fakeServer{w: w, gen: gen}, nil
}

// fakeServer is one process of a fakeWorld. What it is told is marked with its generation once there is a second one
// beside it.
type fakeServer struct {
	w   *fakeWorld
	gen int
}

func (s *fakeServer) mark() string {
	if len(s.w.b.beside) > 0 {
		return fmt.Sprintf("@%d ", s.gen)
	}
	return ""
}

func (s *fakeServer) act(what string) { s.w.acts = append(s.w.acts, s.mark()+what) }

func (s *fakeServer) PID() int                { return 1000 + s.gen }
func (s *fakeServer) Forward(line []byte)     { s.w.toServer = append(s.w.toServer, s.mark()+string(line)) }
func (s *fakeServer) Send(line []byte)        { s.Forward(line) }
func (s *fakeServer) Backlog() int            { return s.w.backlog }
func (s *fakeServer) CloseInput()             { s.act("close") }
func (s *fakeServer) Terminate()              { s.act("term") }
func (s *fakeServer) Kill()                   { s.act("kill") }
func (s *fakeServer) Abandon()                { s.act("abandon") }
func (s *fakeServer) Unread() (int, bool)     { return s.w.unread, s.w.canCount }
func (s *fakeServer) Continue()               { s.act("continue") }
func (s *fakeServer) Vitals() Vitals          { return s.w.vitals }
func (s *fakeServer) LastStderr(int) []string { return s.w.stderr }
func (s *fakeServer) Installing() bool        { return s.w.installs }

func (w *fakeWorld) WriteMarker(m restart.MarkerRecord) error {
	w.marker = &m
	return nil
}

func (w *fakeWorld) ReadMarker() (restart.MarkerRecord, error) {
	if w.marker == nil {
		return restart.MarkerRecord{}, fs.ErrNotExist
	}
	return *w.marker, nil
}

// tick lets time pass in the steps the backend asks for.
func (w *fakeWorld) tick(d time.Duration) {
	end := w.now.Add(d)
	for {
		at := w.wakeAt
		if at.IsZero() || at.After(end) {
			break
		}
		if at.After(w.now) {
			w.now = at
		}
		w.b.Tick(w.now)
	}
	w.now = end
}

// client and server say lines; exit ends the running process, its output included.
func (w *fakeWorld) client(line string) {
	w.b.ClientLine(w.now, []byte(line))
}

func (w *fakeWorld) server(line string) {
	w.b.ServerLine(w.now, w.gen, []byte(line), true)
}

func (w *fakeWorld) exit(code int) {
	e := Exit{Code: code, Unread: w.unread}
	if code > 128 {
		e.Signalled, e.Signal = true, map[int]string{137: "killed", 139: "segmentation fault", 143: "terminated"}[code]
	}
	w.b.ServerExited(w.now, w.gen, e)
	w.b.ServerClosed(w.now, w.gen)
}

// leftover is what the client and its bridge have said that nobody has taken yet, without what waits.
func (w *fakeWorld) leftover() string {
	s := &w.b.eras
	if len(s.toCore) == 0 && (len(s.held) == 0 || s.waits()) {
		return ""
	}
	left := fmt.Sprintf("of the client %q, of its bridge", s.held)
	for _, m := range s.toCore {
		left += fmt.Sprintf(" %q", m.Line)
	}
	return left
}

// takeClient returns and forgets what the client was sent; takeServer and takeActs likewise.
func (w *fakeWorld) takeClient() []string { return take(&w.toClient) }
func (w *fakeWorld) takeServer() []string { return take(&w.toServer) }
func (w *fakeWorld) takeActs() string     { return strings.Join(take(&w.acts), ", ") }

func take(from *[]string) []string {
	out := *from
	*from = nil
	return out
}

var errNoFile = errors.New("no such file")
