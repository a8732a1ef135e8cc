package agentrun

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// streams are the agent's output, and its input if it has a terminal.
type streams struct {
	pumps    []*pump
	terminal *terminal  // nil: pipes
	given    []*os.File // the agent's ends: closed here once it has them
	// alone says that the agent gets a process group of its own.
	alone bool
	wait  sync.WaitGroup
}

// Times and sizes of a pump.
const (
	// drainTime is how long a stream may be silent after the agent's end before it is closed: a descendant holds it
	// open.
	drainTime = 250 * time.Millisecond
	// drainLimit is how much is forwarded after that end, in bytes: the most that a pipe holds. A descendant that
	// continues to write must not block us.
	drainLimit = 1 << 20
	pumpSize   = 64 << 10
)

// pump forwards one output stream.
type pump struct {
	stream   int // 0: stdout, 1: stderr
	from, to *os.File
	seen     *seen
	kept     *logline.Kept // nil: nothing is
	shared   *shared       // nil: nobody can join
}

func (o *Options) terminal() bool {
	return !o.Pipes && (o.Terminal || isTerminal(o.In) && isTerminal(o.Out))
}

// open makes the agent's streams and gives them to its command.
func open(o Options, cmd *exec.Cmd, seen *seen) (*streams, error) {
	switch {
	case !o.terminal():
		return openPipes(o, cmd, seen)
	case isTerminal(o.In) && isTerminal(o.Out):
		return openTerminal(o, cmd, seen)
	}
	return keepTerminal(o, cmd, seen)
}

func openPipes(o Options, cmd *exec.Cmd, seen *seen) (s *streams, err error) {
	// A terminal as stdin works only for processes in its foreground group, which is ours.
	s = &streams{alone: o.NoInput || !isTerminal(o.In)}
	if !o.NoInput {
		cmd.Stdin = o.In
	}
	out, err := s.pipe(0, o.Out, seen)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	if !sameFile(o.Out, o.Err) {
		other, err := s.pipe(1, o.Err, seen)
		if err != nil {
			s.abandon()
			return nil, err
		}
		cmd.Stderr = other
	}
	return s, nil
}

// openSocket lets people join the agent's terminal, if it has one.
func (s *streams) openSocket(path string) error {
	if s.terminal == nil {
		return nil
	}
	err := s.terminal.openSocket(path)
	for _, p := range s.pumps {
		p.shared = s.terminal.shared
	}
	return err
}

// pipe adds a stream and returns the agent's end.
func (s *streams) pipe(stream int, to *os.File, seen *seen) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pumps = append(s.pumps, &pump{stream: stream, from: r, to: to, seen: seen})
	s.given = append(s.given, w)
	return w, nil
}

func sameFile(a, b *os.File) bool {
	sa, errA := a.Stat()
	sb, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// run starts forwarding: the agent has its ends.
func (s *streams) run() {
	s.closeGiven()
	for _, p := range s.pumps {
		s.wait.Go(func() { guard(s.terminal.restore, p.run) })
	}
	if s.terminal.typed() {
		s.wait.Go(func() { guard(s.terminal.restore, s.terminal.input) })
	}
}

// guard runs something, and restores a terminal if that panics.
func guard(restore, run func()) {
	defer func() {
		if mistake := recover(); mistake != nil {
			restore()
			panic(mistake)
		}
	}()
	run()
}

func (s *streams) closeGiven() {
	for _, f := range s.given {
		_ = f.Close()
	}
	s.given = nil
}

func (s *streams) abandon() {
	s.closeGiven()
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
	s.terminal.close()
}

// drain forwards what the agent has written before its end, and stops all readers.
func (s *streams) drain() {
	s.terminal.endInput()
	endless := false
	for _, p := range s.pumps {
		// A waiting pump reads once more.
		endless = errors.Is(p.from.SetReadDeadline(time.Now()), os.ErrNoDeadline) || endless
	}
	if endless { // this system's pipes know no deadlines
		ended := make(chan struct{})
		go func() {
			s.wait.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(4 * drainTime):
		}
	} else {
		s.wait.Wait()
	}
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
}

// run forwards bytes until the stream's end, or until the agent has ended and nothing more comes. Bytes are forwarded
// first and examined then.
func (p *pump) run() {
	buffer := make([]byte, pumpSize)
	left, ended := drainLimit, false
	for {
		p.awaitRoom()
		n, err := p.from.Read(buffer)
		if n > 0 {
			if p.kept != nil {
				_, _ = p.kept.Write(buffer[:n]) // it reports its own losses
			}
			if writeAll(p.to, buffer[:n]) != nil {
				// The reader is gone. The writer must notice that, as it would without us.
				_ = p.from.Close()
				p.note(buffer[:n])
				return
			}
			p.note(buffer[:n])
			if ended {
				left -= n
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !ended:
			ended = true
			_ = p.from.SetReadDeadline(time.Now().Add(drainTime))
		case err != nil, left <= 0:
			return
		case ended:
			// A slow reader must not cost what the pipe still holds.
			_ = p.from.SetReadDeadline(time.Now().Add(drainTime))
		}
	}
}

func (p *pump) note(b []byte) {
	if p.shared != nil {
		p.shared.output(b, time.Now())
		return
	}
	p.seen.output(p.stream, b, time.Now(), unshared)
}
