package hosts

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

const (
	lineLimit = 64 << 20 // bytes of one line of a stream
	// quietLimit is how long a stream may be silent at least, whatever the limit of an answer is: outlive watch --state says
	// something every 2 s.
	quietLimit = 10 * time.Second
)

// Follow runs outlive with these arguments on one host, and hands on each line that it writes until ctx ends, the host does, or
// nothing was heard for the limit, or 10 s if that is longer. A line is valid until the next one.
func (s *Set) Follow(ctx context.Context, h Host, args []string, each func(line []byte)) error {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	var tooQuiet atomic.Bool
	limit := max(s.opts.Limit, quietLimit)
	// It runs from the version on: until then the limit is Run's.
	quiet := time.AfterFunc(limit, func() { tooQuiet.Store(true); cancel() })
	quiet.Stop()
	defer quiet.Stop()
	ended := make(chan error, 1)
	go func() {
		a := s.Run(one, h, Command{Args: args, Out: out, Lasting: true, begun: func() { quiet.Reset(limit) }})
		_ = out.Close()
		ended <- a.Err
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		quiet.Reset(limit)
		each(lines.Bytes())
	}
	_ = in.Close() // after a line that is too long
	cancel()
	err := <-ended
	switch {
	case tooQuiet.Load():
		return silent(limit, "")
	case ctx.Err() != nil:
		return ctx.Err()
	case lines.Err() != nil:
		return &Failure{Kind: Unreadable, Text: lines.Err().Error()}
	case err == nil || errors.Is(err, context.Canceled):
		return &Failure{Kind: Unreachable, Text: "outlive watch has ended there"}
	}
	return err
}
