package gateway

import (
	"os"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// joinedMost is how much may wait for a joined client, in bytes. One that lets more wait is dropped: its server belongs to
// others, too, and goes on being read.
const joinedMost = 64 << 20

// joined is a client that came to a running gateway, with lines both ways. All of it belongs to the loop's goroutine.
type joined struct {
	runner  *Runner
	session *Session
	in      *lineloop.Source
	out     *lineloop.Sink
	gone    bool
}

// Join makes whoever is at the other end of two descriptors a client. The runner closes them. Any goroutine.
func (r *Runner) Join(in, out *os.File) {
	select {
	case <-r.ended:
		_, _ = in.Close(), out.Close()
		return
	default:
	}
	r.loop.Post(func() {
		c := &joined{runner: r}
		c.out = r.loop.AddSink(out, lineloop.SinkOptions{OnError: func(error) { c.leave() }})
		c.session = r.gw.Open(c, nil)
		c.in = r.read(in, c.session, c, func() bool { return c.out.Pending() < clientBehind }, func() {
			c.gone = true
			c.out.CloseWhenDrained()
		})
	})
}

// Send implements [Stream].
func (c *joined) Send(line []byte) {
	if c.gone {
		return
	}
	c.out.Send(line)
	if c.out.Pending() > joinedMost {
		c.runner.loop.Post(c.leave)
	}
}

// leave drops the client.
func (c *joined) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.session.Close(c.runner.Now())
	c.in.Close()
	c.out.Close()
}
