//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// patience is how long a peer may take for anything before it is killed, which
// ends the read that waits for it.
const patience = 60 * time.Second

// errEnded means that the peer closed its stdout before it answered.
var errEnded = errors.New("the peer ended before it answered")

// peer is a running server, reached through one of the three ways.
type peer struct {
	name    string
	cmd     *exec.Cmd
	in, out *os.File // our ends of its stdin and stdout
	w, r    int      // their descriptors
	stderr  *os.File
	gone    chan struct{} // closed when the process is reaped
	nextID  int
	buffer  []byte // what the last read brought
	rest    []byte // lines read but not yet taken; only between ask calls
	ring    []byte // request lines of runSize, one after the other
	runSize int
}

// startPeer starts command with its own pipes. Its stderr is kept for the error
// message, should it fail.
func startPeer(name string, command, env []string, dir string) (*peer, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	stderr, err := os.CreateTemp(dir, "stderr-*")
	if err != nil {
		return nil, fmt.Errorf("keep stderr: %w", err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = inR, outW, stderr, env
	err = cmd.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &peer{
		name: name, cmd: cmd, in: inW, out: outR, w: int(inW.Fd()), r: int(outR.Fd()),
		stderr: stderr, gone: make(chan struct{}), nextID: firstID, buffer: make([]byte, 1<<20),
	}
	go func() {
		// The exit status says nothing that a missing answer does not.
		_ = cmd.Wait()
		close(p.gone)
	}()
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

// lastWords is the end of what the peer wrote to stderr, for an error message.
func (p *peer) lastWords() string {
	text, err := os.ReadFile(p.stderr.Name())
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "; its stderr ended with:\n  " + strings.Join(lines[max(len(lines)-8, 0):], "\n  ")
}

// stop closes the peer's stdin, which ends it, and kills it if that takes
// more than three seconds.
func (p *peer) stop() {
	p.in.Close()
	select {
	case <-p.gone:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.gone
	}
	p.out.Close()
	p.stderr.Close()
	os.Remove(p.stderr.Name())
}
