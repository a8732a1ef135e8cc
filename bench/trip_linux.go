package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// headSize is how much of an answer is kept to read its id from.
const headSize = len(callHead) + idWidth

// load makes ready for lines of the given size with up to inFlight under way:
// one line per slot, so that a line is overwritten only after its answer came.
func (p *peer) load(size, inFlight int) {
	line := callLine(size)
	p.ring = bytes.Repeat(line, inFlight)
	p.runSize = len(line)
}

// trips sends total echo calls, with never more than inFlight under way, and
// appends the round trip of each, in µs, to record. Answers must come in the
// order of the calls, as the echo server gives them.
func (p *peer) trips(total, inFlight int, record []float64) ([]float64, error) {
	defer p.guard()()
	if inFlight == 1 {
		return p.singleTrips(total, record)
	}
	return p.windowTrips(total, inFlight, record)
}

// singleTrips is the plainest client there is: write, then read until the
// answer is whole.
func (p *peer) singleTrips(total int, record []float64) ([]float64, error) {
	for range total {
		id := p.nextID
		p.nextID++
		setID(p.ring, id)
		begin := time.Now()
		if err := p.send(p.ring[:p.runSize]); err != nil {
			return record, err
		}
		if err := p.awaitAnswer(id); err != nil {
			return record, err
		}
		record = append(record, float64(time.Since(begin).Nanoseconds())/1e3)
	}
	return record, nil
}

// awaitAnswer reads until the line with the given id has ended.
func (p *peer) awaitAnswer(id int) error {
	var lines lineReader
	for {
		n, err := p.read()
		if err != nil {
			return err
		}
		for chunk := p.buffer[:n]; len(chunk) > 0; {
			got, ended := 0, false
			got, ended, chunk = lines.next(chunk)
			if ended && got == id {
				return nil
			}
		}
	}
}

// windowTrips keeps inFlight calls under way: each answer makes room for the
// next call. Neither side ever waits for the other while it could go on.
func (p *peer) windowTrips(total, inFlight int, record []float64) ([]float64, error) {
	if err := p.setBlocking(false); err != nil {
		return record, err
	}
	first, answered := p.nextID, 0
	p.nextID += total
	begun := make([]time.Time, inFlight)
	queued, sent := 0, 0 // lines put into the ring; bytes of them written
	var lines lineReader
	for answered < total {
		for now := time.Now(); queued < total && queued-answered < inFlight; queued++ {
			slot := queued % inFlight
			setID(p.ring[slot*p.runSize:], first+queued)
			begun[slot] = now
		}
		if err := p.writeRing(&sent, queued*p.runSize); err != nil {
			return record, err
		}
		n, err := p.read()
		if err != nil {
			return record, err
		}
		if n == 0 {
			if err := p.wait(sent < queued*p.runSize); err != nil {
				return record, err
			}
			continue
		}
		now := time.Now()
		for chunk := p.buffer[:n]; len(chunk) > 0; {
			got, ended := 0, false
			got, ended, chunk = lines.next(chunk)
			if !ended || got == 0 {
				continue
			}
			if got != first+answered {
				return record, fmt.Errorf("%s answered %d when %d was due", p.name, got, first+answered)
			}
			record = append(record, float64(now.Sub(begun[answered%inFlight]).Nanoseconds())/1e3)
			answered++
		}
	}
	return record, p.setBlocking(true)
}

// writeRing writes what the ring holds from *sent up to end, as far as the pipe
// takes it. Both count bytes since the start of the run.
func (p *peer) writeRing(sent *int, end int) error {
	for *sent < end {
		at := *sent % len(p.ring)
		n, err := rawio.Write(p.w, p.ring[at:min(len(p.ring), at+end-*sent)])
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write to %s: %w%s", p.name, err, p.lastWords())
		}
		*sent += n
	}
	return nil
}

// wait polls for an answer and, when more is to be sent, for room to send it.
func (p *peer) wait(more bool) error {
	fds := []unix.PollFd{{Fd: int32(p.r), Events: unix.POLLIN}, {Fd: -1}}
	if more {
		fds[1] = unix.PollFd{Fd: int32(p.w), Events: unix.POLLOUT}
	}
	if _, err := rawio.Poll(fds); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("poll %s: %w", p.name, err)
	}
	return nil
}

// lineReader finds the ends of lines in a stream of chunks and remembers the
// beginning of the current line, which is all that is needed of it.
type lineReader struct {
	head [headSize]byte
	have int
}

// next takes in the chunk up to the end of its first line and returns what is
// left. When the line ended, id is its id, or 0 if it has none of ours.
func (l *lineReader) next(chunk []byte) (id int, ended bool, rest []byte) {
	if l.have < headSize {
		l.have += copy(l.head[l.have:], chunk)
	}
	end := bytes.IndexByte(chunk, '\n')
	if end < 0 {
		return 0, false, nil
	}
	if id, ended = answerID(l.head[:l.have]); !ended {
		id = 0
	}
	l.have = 0
	return id, true, chunk[end+1:]
}
