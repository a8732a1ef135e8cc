package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// journalFlag makes outlive tell what happens in a form that a journal reads.
const journalFlag = "--log-format=json"

// told is one event that outlive told of on its stderr.
type told struct {
	Event      string `json:"event"`
	Generation int    `json:"generation"`
	ServerPID  int    `json:"server_pid"`
	Message    string `json:"msg"`
}

// journal reads what a peer's outlive tells, while it tells it.
type journal struct {
	peer   *peer
	at     int64  // bytes read so far
	part   []byte // of the last line
	events []told
}

// read takes in what has been told since; what is not an event, such as the server's own stderr, is passed over.
func (j *journal) read() error {
	var buffer [16 << 10]byte
	for {
		n, err := j.peer.said.ReadAt(buffer[:], j.at)
		j.at += int64(n)
		j.part = append(j.part, buffer[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read what %s tells: %w", j.peer.name, err)
		}
	}
	for {
		line, rest, whole := bytes.Cut(j.part, []byte("\n"))
		if !whole {
			return nil
		}
		j.part = rest
		var e told
		if json.Unmarshal(line, &e) == nil && e.Event != "" {
			j.events = append(j.events, e)
		}
	}
}

// count is how often a kind of event has been told of so far.
func (j *journal) count(kind string) int {
	n := 0
	for _, e := range j.events {
		if e.Event == kind {
			n++
		}
	}
	return n
}

// serving is the process that became the serving one last, 0 if none has.
func (j *journal) serving() int {
	pid := 0
	for _, e := range j.events {
		if e.Event == "server_ready" {
			pid = e.ServerPID
		}
	}
	return pid
}

// await waits until a kind of event has been told of n times.
func (j *journal) await(kind string, n int) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if err := j.read(); err != nil {
			return err
		}
		if j.count(kind) >= n {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s tells of %s %d times in %v, want %d%s", j.peer.name, kind, j.count(kind), patience, n, j.peer.lastWords())
		}
	}
}

// startTold starts server behind outlive with flags, completes the handshake and waits until it serves.
func (b *bench) startTold(server []string, flags ...string) (*peer, *journal, error) {
	p, err := b.startPeer("outlive", b.outliveCommand(server, flags...))
	if err != nil {
		return nil, nil, err
	}
	j := &journal{peer: p}
	if err := errors.Join(p.handshake(), j.await("server_ready", 1)); err != nil {
		p.stop()
		return nil, nil, err
	}
	return p, j, nil
}

// outliveCommand is outlive with these flags besides those that every measurement has.
func (b *bench) outliveCommand(server []string, flags ...string) []string {
	command := []string{b.outlive, "run", journalFlag, "--restart-delay", "0", "--max-restarts", "0"}
	command = append(append(command, flags...), "--")
	return append(command, server...)
}
