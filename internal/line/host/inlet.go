package host

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// inlet is the way to a server, also before there is one: what it gets till then is kept. Loop goroutine only.
type inlet struct {
	sink    *lineloop.Sink // nil: there is no server yet
	waiting [][]byte       // what was given till then
}

func (i *inlet) Forward(line []byte) {
	if i.sink == nil {
		i.Send(line)
		return
	}
	i.sink.Forward(line)
}

func (i *inlet) Send(line []byte) {
	if i.sink == nil {
		i.waiting = append(i.waiting, bytes.Clone(line))
		return
	}
	i.sink.Send(line)
}

func (i *inlet) Backlog() int {
	if i.sink == nil {
		return 0
	}
	return i.sink.Refused()
}

// open gives the server what waits for it.
func (i *inlet) open(to *lineloop.Sink) {
	i.sink = to
	for _, line := range i.waiting {
		to.Send(line)
	}
	i.waiting = nil
}

// pending is how many bytes have not been written, newlines included.
func (i *inlet) pending() (n int) {
	if i.sink != nil {
		return i.sink.Pending()
	}
	for _, line := range i.waiting {
		n += len(line) + 1
	}
	return n
}
