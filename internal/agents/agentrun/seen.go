package agentrun

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// seen is what is known of an agent, the present report. The streams update it, the recorder reads it.
type seen struct {
	// changed has an element when there is something to write.
	changed chan struct{}

	mu      sync.Mutex
	report  Report
	urgent  bool // it must be reported soon
	modes   modes
	titles  titles
	sources [2]source // stdout, stderr
	screen  *screen   // what its terminal shows; nil: it has none
	shown   shown     // what that has shown so far
	tail    []byte    // the end of its output to pipes
}

// source is one stream of output.
type source struct {
	scanner scanner
	lines   lines
}

func newSeen(r Report) *seen {
	return &seen{changed: make(chan struct{}, 1), report: r}
}

// output records forwarded bytes and hands on their pieces. stream is 0 for stdout, 1 for stderr.
func (s *seen) output(stream int, b []byte, now time.Time, each func(piece)) {
	if len(b) == 0 {
		return
	}
	s.mu.Lock()
	s.report.OutputAt = now
	s.report.Bytes += int64(len(b))
	if s.screen == nil {
		s.keep(b)
	}
	src := &s.sources[stream]
	src.scanner.scan(b, func(p piece) {
		if title, ok := p.title(); ok {
			s.title(title, now)
		}
		s.modes.change(p.sequence)
		if s.screen != nil {
			s.screen.draw(p)
		}
		each(p)
	})
	src.lines.scan(b, s.line)
	s.mu.Unlock()
	s.poke()
}

// input records forwarded bytes of our terminal.
func (s *seen) input(b []byte, now time.Time) {
	if !hasKey(b) {
		return
	}
	s.mu.Lock()
	s.report.TypedAt = now
	s.mu.Unlock()
	s.poke()
}

func (s *seen) title(text string, now time.Time) {
	title := printable(text, titleLimit)
	state := s.titles.read(title)
	if state != s.report.TitleState || s.report.TitleAt.IsZero() {
		s.report.TitleState, s.report.TitleAt, s.urgent = state, now, true
	}
	s.report.Title = title
}

func (s *seen) line(line []byte) {
	e := readLine(line)
	if e.session != "" && e.session != s.report.Session {
		s.report.Session, s.urgent = e.session, true
	}
	if (e.goesOn || e.failed != "") && e.failed != s.report.Failed {
		s.report.Failed, s.urgent = e.failed, true
	}
}

// keep remembers the end of the output. It is drawn for a report only: there is one in a second at most, and output may come in
// megabytes.
func (s *seen) keep(b []byte) {
	if s.tail = append(s.tail, b...); len(s.tail) > 2*tailSize {
		end := s.tail[len(s.tail)-tailSize:]
		// It may begin inside of a sequence or of a character.
		s.tail = append(s.tail[:0], end[max(bytes.IndexAny(end, "\n\x1b"), 0):]...)
	}
}

// notice records an sd_notify message of the agent or a descendant.
func (s *seen) notice(pid int, n heartbeat.Notice, now time.Time) {
	s.mu.Lock()
	if s.report.Notice == nil {
		s.report.Notice = &Notice{}
	}
	to := s.report.Notice
	to.PID, to.At = pid, now
	if n.Status != "" {
		to.Status = n.Status
	}
	if n.Watchdog {
		to.WatchdogAt = now
	}
	if n.Extend > 0 {
		to.Until = now.Add(n.Extend)
	}
	changed := n.Ready && !to.Ready || n.Stopping && !to.Stopping || n.Trigger && !to.Stuck
	to.Ready = to.Ready || n.Ready
	to.Stopping = to.Stopping || n.Stopping
	to.Stuck = n.Trigger || to.Stuck && !n.Watchdog
	s.urgent = s.urgent || changed
	s.mu.Unlock()
	s.poke()
}

// started records the agent's process and its start time, and whether it has pipes in place of a terminal.
func (s *seen) started(pid int, at time.Time, piped bool) {
	id := process.System{}.Identify(pid)
	s.mu.Lock()
	s.report.PID, s.report.Start, s.report.Boot, s.report.StartedAt = id.PID, id.Start, id.Boot, at
	s.report.Piped = piped
	s.mu.Unlock()
}

func (s *seen) exit(e Exit) {
	s.mu.Lock()
	s.report.Exit, s.urgent = &e, true
	s.mu.Unlock()
	s.poke()
}

// resize gives the agent a terminal of a size, or its terminal another one.
func (s *seen) resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		s.screen = newScreen(rows, cols)
		return
	}
	s.screen.resize(rows, cols)
}

// size is the size of the agent's terminal; 0: it has none.
func (s *seen) size() (rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		return 0, 0
	}
	return len(s.screen.cells), len(s.screen.cells[0])
}

// left is the output that restores a terminal whose agent was killed.
func (s *seen) left() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modes.undo()
}

// redo is the output that makes an empty terminal of rows and cols characters show the agent's, with its modes.
func (s *seen) redo(rows, cols int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	screen, rest := s.modes.redo()
	return slices.Concat([]byte(screen), s.screen.paint(rows, cols), []byte(rest))
}

func (s *seen) setJoined(list []Joined) {
	s.mu.Lock()
	s.report.Joined, s.urgent = list, true
	s.mu.Unlock()
	s.poke()
}

func (s *seen) setSocket(path string) {
	s.mu.Lock()
	s.report.Socket = path
	s.mu.Unlock()
}

// pressing reports whether the report has an urgent change, once for each.
func (s *seen) pressing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.urgent
	s.urgent = false
	return was
}

// readText records when its terminal has shown new text, if it has since the last report. The caller has the lock.
func (s *seen) readText() {
	if s.screen == nil {
		return
	}
	news, counts := s.shown.add(s.screen.lines())
	if news {
		s.report.TextAt = s.report.OutputAt
	}
	if counts {
		s.report.CountAt = s.report.OutputAt
	}
}

// snapshot is the report as it is now.
func (s *seen) snapshot() Report {
	s.mu.Lock()
	s.readText()
	r := s.report
	if r.Notice != nil {
		n := *r.Notice
		r.Notice = &n
	}
	if s.screen != nil {
		r.LastLines = s.screen.lastLines()
	}
	tail := bytes.ReplaceAll(s.tail, []byte("\n"), []byte("\r\n")) // a copy; a terminal's driver begins each line at the left, too
	s.mu.Unlock()
	if len(tail) > 0 {
		paper := newScreen(2*lastCount, pipeWidth)
		var cutter scanner
		cutter.scan(tail, paper.draw)
		r.LastLines = paper.lastLines()
	}
	return r
}

// unshared is for the pieces of an output that nobody joins.
func unshared(piece) {}

func (s *seen) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
