package agentrun

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// streams are what the agent's output comes by, and what its input goes by when it has a terminal.
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
	// drainTime is how long a stream may be silent after the agent's end until it is given up: a descendant holds it open.
	drainTime = 250 * time.Millisecond
	// drainLimit is the most that is passed on after that end, in bytes: the most that a pipe holds. A descendant that goes on
	// writing does not hold us up for ever.
	drainLimit = 1 << 20
	pumpSize   = 64 << 10
)

// pump passes one stream of output on.
type pump struct {
	stream   int // 0: stdout, 1: stderr
	from, to *os.File
	seen     *seen
	kept     *logline.Kept // nil: nothing is
	shared   *shared       // nil: nobody can join
}

// open makes the agent's streams and gives them to its command.
func open(o Options, cmd *exec.Cmd, seen *seen) (*streams, error) {
	if !o.Pipes && isTerminal(o.In) && isTerminal(o.Out) {
		return openTerminal(o, cmd, seen)
	}
	if o.Terminal && !o.Pipes {
		return keepTerminal(o, cmd, seen)
	}
	return openPipes(o, cmd, seen)
}

func openPipes(o Options, cmd *exec.Cmd, seen *seen) (s *streams, err error) {
	// With its keyboard at a terminal the agent is in the foreground only beside us.
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

// openDoor lets people join the agent's terminal, where it has one.
func (s *streams) openDoor(path string) error {
	if s.terminal == nil {
		return nil
	}
	err := s.terminal.openDoor(path)
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

// run passes bytes on from now on: the agent has its ends.
func (s *streams) run() {
	s.closeGiven()
	for _, p := range s.pumps {
		s.wait.Go(func() { s.guard(p.run) })
	}
	if s.terminal.typed() {
		s.wait.Go(func() { s.guard(s.terminal.input) })
	}
}

// guard has a mistake of ours not leave a raw terminal behind.
func (s *streams) guard(run func()) {
	defer func() {
		if mistake := recover(); mistake != nil {
			s.terminal.restore()
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

// abandon closes everything: there is no agent.
func (s *streams) abandon() {
	s.closeGiven()
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
	s.terminal.close()
}

// drain passes on what the agent has written before its end, and ends everything that reads.
func (s *streams) drain() {
	s.terminal.endInput()
	endless := false
	for _, p := range s.pumps {
		// The pump that waits for more takes one last look.
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

// run passes bytes on until the stream's end, or until the agent has ended and nothing more comes. What is read is passed on
// first and looked at then.
func (p *pump) run() {
	buffer := make([]byte, pumpSize)
	left, ended := drainLimit, false
	for {
		p.awaitRoom()
		n, err := p.from.Read(buffer)
		if n > 0 {
			if p.kept != nil {
				_, _ = p.kept.Write(buffer[:n]) // it accounts its own losses
			}
			if writeAll(p.to, buffer[:n]) != nil {
				// Nobody takes it any more. Whoever writes to it has to hear of that, as it would without us.
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
			// A slow reader on the other side must not cost what the pipe still holds.
			_ = p.from.SetReadDeadline(time.Now().Add(drainTime))
		}
	}
}

// note tells of what was passed on.
func (p *pump) note(b []byte) {
	if p.shared != nil {
		p.shared.output(b, time.Now())
		return
	}
	p.seen.output(p.stream, b, time.Now())
}
