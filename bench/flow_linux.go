package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// flow is calls that keep coming while something else happens. Answers may come in any order, as they do when two
// processes answer for a while; each id must get exactly one.
type flow struct {
	peer     *peer
	inFlight int
	pause    time.Duration     // before each call; 0: none
	answered func(line []byte) // sees every answer; may be nil

	begun  map[int]time.Time // of the calls under way, by id
	out    []byte            // written up to sent
	sent   int
	part   []byte    // the beginning of a line
	waits  []float64 // of each call, µs
	failed []string  // answers that were errors
}

// run keeps calls under way until done says so, waits for the last answers, and returns how long each call took in µs.
func (f *flow) run(done func() (bool, error)) ([]float64, error) {
	defer f.peer.guard()()
	if err := f.peer.setBlocking(false); err != nil {
		return nil, err
	}
	f.begun, f.waits = map[int]time.Time{}, nil
	for enough := false; !enough || len(f.begun) > 0; {
		if !enough {
			var err error
			if enough, err = done(); err != nil {
				return nil, err
			}
			f.call()
		}
		if err := f.write(); err != nil {
			return nil, err
		}
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	return f.waits, f.peer.setBlocking(true)
}

// call fills what room there is with calls.
func (f *flow) call() {
	if f.pause > 0 && len(f.begun) < f.inFlight {
		rawio.Sleep(f.pause)
	}
	line := f.peer.ring[:f.peer.runSize]
	for now := time.Now(); len(f.begun) < f.inFlight; f.peer.nextID++ {
		setID(line, f.peer.nextID)
		f.begun[f.peer.nextID] = now
		f.out = append(f.out, line...)
	}
}

func (f *flow) write() error {
	for f.sent < len(f.out) {
		n, err := rawio.Write(f.peer.w, f.out[f.sent:])
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write to %s: %w%s", f.peer.name, err, f.peer.lastWords())
		}
		f.sent += n
	}
	f.out, f.sent = f.out[:0], 0
	return nil
}

// read takes in what has come, and waits for something if nothing has.
func (f *flow) read() error {
	n, err := f.peer.read()
	if err != nil {
		return err
	}
	if n == 0 {
		return f.peer.wait(f.sent < len(f.out))
	}
	now := time.Now()
	f.part = append(f.part, f.peer.buffer[:n]...)
	rest := f.part
	for {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			break
		}
		rest = after
		if err := f.take(now, line); err != nil {
			return err
		}
	}
	f.part = append(f.part[:0], rest...)
	return nil
}

// take checks one line.
func (f *flow) take(now time.Time, line []byte) error {
	if bytes.Contains(line, []byte(`"method":`)) {
		return nil // a notification
	}
	id, ok := answerID(line)
	begun, open := f.begun[id]
	if !ok || !open {
		return fmt.Errorf("%s answered what was not asked, or twice: %.200s", f.peer.name, line)
	}
	delete(f.begun, id)
	f.waits = append(f.waits, float64(now.Sub(begun).Nanoseconds())/1e3)
	if bytes.Contains(line, []byte(`"error":`)) || bytes.Contains(line, []byte(`"isError":true`)) {
		f.failed = append(f.failed, string(line))
	}
	if f.answered != nil {
		f.answered(line)
	}
	return nil
}
