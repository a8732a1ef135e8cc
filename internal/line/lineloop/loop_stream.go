//go:build !unix || outlive_stream

package lineloop

import (
	"errors"
	"io"
	"os"
	"time"
)

// driver is the part of a loop that talks to the system where descriptors cannot be polled: one goroutine per source
// reads ahead of the loop by one buffer, one per sink writes behind it by one.
type driver struct {
	arrivals chan func() // work from the goroutines
	bell     chan struct{}
	sources  []*Source
	sinks    []*Sink
	writers  map[*Sink]chan []byte
	taken    map[*Sink]bool // the sink's writer is busy
	quit     chan struct{}
}

// gateRetry is the interval at which the gate of a held-back source is checked.
const gateRetry = 2 * time.Millisecond

func (l *Loop) initDriver() error {
	l.arrivals = make(chan func())
	l.bell = make(chan struct{}, 1)
	l.writers = map[*Sink]chan []byte{}
	l.taken = map[*Sink]bool{}
	l.quit = make(chan struct{})
	return nil
}

func (l *Loop) wake() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

func (l *Loop) wait() (posted bool) {
	select {
	case fn := <-l.arrivals:
		l.now = time.Now()
		fn()
		l.Flush()
	case <-l.bell:
		l.now = time.Now()
		posted = true
	}
	return posted
}

// bring passes fn to the loop and reports whether the loop still runs.
func (l *Loop) bring(fn func()) bool {
	select {
	case l.arrivals <- fn:
		return true
	case <-l.quit:
		return false
	}
}

func (l *Loop) watchSource(s *Source) {
	l.sources = append(l.sources, s)
	go l.readAll(s)
}

// readAll is the goroutine of a source; it ends with the stream or the loop.
func (l *Loop) readAll(s *Source) {
	buf := make([]byte, copyLimit)
	for {
		n, err := s.file.Read(buf)
		digested := make(chan struct{})
		if n > 0 {
			if !l.bring(func() { l.digest(s, buf[:n], digested) }) {
				return
			}
			select {
			case <-digested:
			case <-l.quit:
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				err = nil
			}
			l.bring(func() {
				if !s.done {
					s.finish(err)
				}
			})
			return
		}
	}
}

// digest passes what was read to the source, as soon as its gate is open.
func (l *Loop) digest(s *Source, p []byte, digested chan<- struct{}) {
	if s.done {
		close(digested)
		return
	}
	if s.opts.Gate != nil && !s.opts.Gate() {
		time.AfterFunc(gateRetry, func() { l.Post(func() { l.digest(s, p, digested) }) })
		return
	}
	for len(p) > 0 && !s.done {
		n := copy(s.room(), p)
		p = p[n:]
		s.took(n)
	}
	close(digested)
}

func (l *Loop) watchSink(k *Sink) {
	work := make(chan []byte)
	l.sinks = append(l.sinks, k)
	l.writers[k] = work
	go l.writeAll(k, work)
}

// writeAll is the goroutine of a sink; it ends when its channel is closed.
func (l *Loop) writeAll(k *Sink, work <-chan []byte) {
	for p := range work {
		_, err := k.file.Write(p)
		long := len(p) > ShareLimit
		l.bring(func() {
			delete(l.taken, k)
			if long {
				l.longMoved() // the copy was allocated, too
			}
			switch {
			case k.done:
			case err != nil:
				k.fail(err)
			default:
				k.drain()
			}
		})
	}
	_ = k.file.Close()
}

// write passes one piece to the sink's goroutine if that is idle; otherwise the piece waits in the sink's queue.
func (l *Loop) write(k *Sink, batch [][]byte) (int, error) {
	if l.taken[k] || len(batch) == 0 {
		return 0, nil
	}
	l.taken[k] = true
	total := 0
	var joined []byte
	for _, p := range batch {
		joined = append(joined, p...)
		total += len(p)
	}
	l.writers[k] <- joined
	return total, nil
}

func (l *Loop) removeSource(s *Source) {
	_ = s.file.Close()
}

func (l *Loop) removeSink(k *Sink) {
	if work, ok := l.writers[k]; ok {
		close(work)
		delete(l.writers, k)
	}
}

func (l *Loop) closeDriver() {
	close(l.quit)
	for _, s := range l.sources {
		s.Close()
	}
	for _, k := range l.sinks {
		if !k.done {
			k.Close()
		}
	}
}

// HandsOver says that descriptors cannot be passed to another image of this program: goroutines read ahead of the
// loop.
const HandsOver = false

// Reopen makes an os.File of a descriptor.
func Reopen(fd int, name string) *os.File { return os.NewFile(uintptr(fd), name) }
