package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// peer is a running server on stdio, reached through one of several ways.
type peer struct {
	*process
	in, out *os.File // our ends of its stdin and stdout
	w, r    int      // their descriptors
	nextID  int
	buffer  []byte // what the last read brought
	rest    []byte // lines read but not yet taken; only between ask calls
	ring    []byte // request lines of runSize, one after the other
	runSize int
}

// startPeer starts a command with its own pipes.
func (b *bench) startPeer(name string, argv []string) (*peer, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer outW.Close()
	started, err := b.launch(command{name: name, argv: argv, env: b.env, dir: b.dir, stdin: inR, stdout: outW})
	if err != nil {
		return nil, err
	}
	p := &peer{process: started, in: inW, out: outR, w: int(inW.Fd()), r: int(outR.Fd()), nextID: firstID, buffer: make([]byte, 1<<20)}
	return p, p.setBlocking(true)
}

// setBlocking chooses how reads and writes wait: by themselves, or by a poll.
func (p *peer) setBlocking(on bool) error {
	return errors.Join(unix.SetNonblock(p.w, !on), unix.SetNonblock(p.r, !on))
}

// guard kills the peer unless release is called within patience.
func (p *peer) guard() (release func()) {
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	return func() { timer.Stop() }
}

// handshake opens the MCP connection and reads the tool list, and returns when
// both are answered.
func (p *peer) handshake() error {
	if err := p.initialize(); err != nil {
		return err
	}
	return p.list()
}

// initialize sends initialize, waits for its answer, and confirms.
func (p *peer) initialize() error {
	if _, err := p.ask(initializeLine); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return p.send([]byte(initialized))
}

// list asks for the tools and waits for the answer.
func (p *peer) list() error {
	answer, err := p.ask(listLine)
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	if !bytes.Contains(answer, []byte(`"tools"`)) {
		return fmt.Errorf("%s: tools/list was answered with %.300s", p.name, answer)
	}
	return nil
}

// call calls a tool that must answer without an error.
func (p *peer) call(params string) error {
	answer, err := p.ask(func(id int) string {
		return fmt.Sprintf(callHead+`%d,"method":"tools/call","params":%s}`+"\n", id, params)
	})
	if err != nil {
		return fmt.Errorf("tools/call: %w", err)
	}
	if !good(answer) {
		return fmt.Errorf("%s: %w: %.300s", p.name, errUnanswered, answer)
	}
	return nil
}

// ask sends one request and returns the line that answers it, valid until the
// next call; other lines are dropped.
func (p *peer) ask(line func(id int) string) ([]byte, error) {
	defer p.guard()()
	id := p.nextID
	p.nextID++
	if err := p.send([]byte(line(id))); err != nil {
		return nil, err
	}
	for {
		for {
			answer, after, found := bytes.Cut(p.rest, []byte("\n"))
			if !found {
				break
			}
			p.rest = after
			if got, ok := answerID(answer); ok && got == id {
				return answer, nil
			}
		}
		n, err := p.read()
		if err != nil {
			return nil, err
		}
		p.rest = append(bytes.Clone(p.rest), p.buffer[:n]...)
	}
}

// send writes all of data; the descriptor must be blocking.
func (p *peer) send(data []byte) error {
	for len(data) > 0 {
		n, err := rawio.Write(p.w, data)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write to %s: %w%s", p.name, err, p.lastWords())
		}
		data = data[n:]
	}
	return nil
}

// read reads once into the buffer; 0 without an error means try again.
func (p *peer) read() (int, error) {
	n, err := rawio.Read(p.r, p.buffer)
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read from %s: %w", p.name, err)
	}
	if n == 0 {
		return 0, fmt.Errorf("read from %s: %w%s", p.name, errEnded, p.lastWords())
	}
	return n, nil
}

// stop closes the peer's stdin, which ends it, and kills it if that takes
// more than three seconds.
func (p *peer) stop() {
	p.in.Close()
	p.await(3 * time.Second)
	p.out.Close()
}
