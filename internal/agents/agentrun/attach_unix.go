//go:build unix

package agentrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// connectTime is how long the wrapper may take to accept us.
const connectTime = 5 * time.Second

// attachment is the person's end of a joined terminal.
type attachment struct {
	o      AttachOptions
	conn   net.Conn
	before *term.State
	wake   [2]int // a pipe: a byte in it ends input
	heard  chan os.Signal

	write sync.Mutex // of frames
	left  chan bool  // input has ended; true: by the key that leaves
	ended chan error // output has ended; nil: the agent has, see exit
	exit  *Exit

	scanner scanner // of the output: modes that it has changed in the person's terminal
	modes   modes
}

// Attach joins an agent's terminal until the person leaves, the agent ends, a signal comes (SIGTERM, SIGINT, SIGHUP,
// SIGQUIT), or ctx ends. The person's terminal is always restored. The errors wrap [ErrNoTerminal], [ErrNobodyListens],
// [ErrRefused] or [ErrLost]; the agent is never touched.
func Attach(ctx context.Context, o AttachOptions) (Leaving, error) {
	before, err := settings(o.In)
	if err != nil || !isTerminal(o.Out) {
		return Leaving{}, ErrNoTerminal
	}
	a := &attachment{o: o, before: before, heard: make(chan os.Signal, 16), left: make(chan bool, 1), ended: make(chan error, 1)}
	if a.conn, err = connect(ctx, o.Socket); err != nil {
		return Leaving{}, err
	}
	defer a.conn.Close()
	if err := a.join(); err != nil {
		return Leaving{}, err
	}
	if err := unix.Pipe(a.wake[:]); err != nil {
		return Leaving{}, err
	}
	defer func() { _, _ = unix.Close(a.wake[0]), unix.Close(a.wake[1]) }()
	signal.Notify(a.heard, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGPIPE)
	defer signal.Stop(a.heard)
	if o.Attached != nil {
		o.Attached()
	}
	return a.run(ctx)
}

// connect connects to the wrapper, if it is this user's or root's.
func connect(ctx context.Context, socket string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime}
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, errors.Join(ErrNobodyListens, err)
	}
	uid, err := peer.Unix(conn.(*net.UnixConn))
	if err == nil && !peer.OursOrRoots(uid) {
		err = fmt.Errorf("user %d listens at %s", uid, socket)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (a *attachment) window(redraw bool) window {
	w := windowOf(a.o.Out)
	w.Redraw = redraw
	return w
}

// join identifies us, and waits for the permission.
func (a *attachment) join() error {
	if err := a.conn.SetDeadline(time.Now().Add(connectTime)); err != nil {
		return err
	}
	err := sendValue(a.conn, helloFrame, hello{Version: 1, Who: a.o.Who, PID: os.Getpid(), ReadOnly: a.o.ReadOnly, Window: a.window(false)})
	if err != nil {
		return errors.Join(ErrLost, err)
	}
	switch kind, content, err := readFrame(a.conn); {
	case err != nil:
		return errors.Join(ErrLost, err)
	case kind == refusedFrame:
		return fmt.Errorf("%w: %s", ErrRefused, printable(string(content), titleLimit))
	case kind != welcomeFrame:
		return errors.Join(ErrLost, errFrame)
	}
	return a.conn.SetDeadline(time.Time{})
}

// run passes bytes both ways with the person's terminal raw.
func (a *attachment) run(ctx context.Context) (l Leaving, err error) {
	var done sync.WaitGroup
	defer func() {
		_, _ = unix.Write(a.wake[1], []byte{0})
		_ = a.conn.Close()
		done.Wait()
		a.tidy()
	}()
	a.makeRoom()
	makeRaw(a.o.In)
	done.Go(func() { guard(a.restore, a.input) })
	done.Go(func() { guard(a.restore, a.output) })
	for {
		select {
		case <-ctx.Done():
			return Leaving{}, ctx.Err()
		case byKey := <-a.left:
			if !byKey {
				return Leaving{}, io.ErrUnexpectedEOF // the person's terminal has gone
			}
			return Leaving{}, nil
		case err := <-a.ended:
			return Leaving{Exit: a.exit}, err
		case sig := <-a.heard:
			if end, number := a.signal(sig.(syscall.Signal)); end {
				return Leaving{Signal: sig.String(), Number: number}, nil
			}
		}
	}
}

// signal handles a signal; end says that it ends us.
func (a *attachment) signal(sig syscall.Signal) (end bool, number int) {
	switch sig {
	case unix.SIGPIPE:
	case unix.SIGWINCH:
		a.say(windowFrame, a.window(false))
	case unix.SIGTSTP:
		a.restore()
		// SIGTSTP would have no effect: a Go program that has ever handled it does not stop on it.
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	case unix.SIGCONT: // another program may have changed the terminal meanwhile
		makeRaw(a.o.In)
		a.say(windowFrame, a.window(true))
	default:
		return true, int(sig)
	}
	return false, 0
}

// say sends a frame. A lost connection is noticed by the reader.
func (a *attachment) say(kind frameKind, v any) {
	content, ok := v.([]byte)
	if !ok {
		content, _ = json.Marshal(v) // numbers only
	}
	a.write.Lock()
	defer a.write.Unlock()
	_ = sendFrame(a.conn, kind, content)
}

// makeRoom scrolls away what the person's terminal shows, so that it is not overwritten. One that does not tell its size has
// a usual one.
func (a *attachment) makeRoom() {
	rows := cmp.Or(windowOf(a.o.Out).Rows, 24)
	_ = writeAll(a.o.Out, fmt.Appendf(nil, "\x1b[%dH%s", rows, strings.Repeat("\n", rows))) // what cannot be written is heard of later
}

func (a *attachment) output() {
	for {
		kind, content, err := readFrame(a.conn)
		switch {
		case err != nil:
			a.ended <- errors.Join(ErrLost, err)
			return
		case kind == outputFrame:
			a.scanner.scan(content, func(p piece) { a.modes.change(p.sequence) })
			if err := writeAll(a.o.Out, content); err != nil {
				a.ended <- err
				return
			}
		case kind == exitFrame:
			var exit Exit
			if err := json.Unmarshal(content, &exit); err != nil {
				a.ended <- errors.Join(ErrLost, err)
				return
			}
			a.exit = &exit
			a.ended <- nil
			return
		}
	}
}

// input forwards typed bytes until the pipe is readable. It waits for both, as [terminal.input] does.
func (a *attachment) input() {
	var keys leaveScanner
	buffer := make([]byte, 4<<10)
	for {
		n, err := readUnless(a.o.In, buffer, a.wake[0])
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil || n == 0:
			a.left <- false
			return
		}
		pass, left := keys.read(buffer[:n])
		if len(pass) > 0 && !a.o.ReadOnly {
			a.say(inputFrame, pass)
		}
		if left {
			a.left <- true
			return
		}
	}
}

func (a *attachment) restore() { _ = apply(a.o.In, a.before) }

// tidy restores the person's terminal, including the modes that the agent has changed.
func (a *attachment) tidy() {
	other := a.modes.on["1049"] || a.modes.on["1047"] || a.modes.on["47"]
	text := "\x1b[0m\x1b[r" + a.modes.undo()
	if rows := windowOf(a.o.Out).Rows; rows > 0 && !other {
		text += fmt.Sprintf("\x1b[%dH\r\n", rows)
	}
	_ = writeAll(a.o.Out, []byte(text)) // a terminal that has gone needs no setting back
	a.restore()
}
