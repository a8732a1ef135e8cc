package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/backend"
	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/launcher"
	"github.com/outlive-mcp/outlive/internal/wire"
)

// Saved is a running proxy in a form that can be kept as JSON. Another image of this program, executed in place of this
// one, goes on with it: the process is the same, and so are the client, the server and every byte between them.
type Saved struct {
	At      time.Time // when it was saved
	In      wire.SavedSource
	Out     wire.SavedSink
	Server  savedServer
	Keeper  child.SavedKeeper
	Backend backend.Saved

	NoShortcut bool
	Shortcut   *launcher.Command
}

// savedServer is the serving process with its pipes.
type savedServer struct {
	Process child.SavedProcess
	Input   wire.SavedSink
	Output  wire.SavedSource
	Env     []string
	Direct  bool
	Ready   bool
	Words   []string // its last words on stderr
	Marker  int      // bytes of a restart marker its stderr ends with
	SpokeAt time.Time
}

// Descriptors are those that the next image needs: they must be made inheritable.
func (s *Saved) Descriptors() []int {
	all := []int{s.In.FD, s.Out.FD}
	all = append(all, s.Server.Process.Descriptors()...)
	return append(all, s.Keeper.Descriptors()...)
}

const (
	// handoverRetry is how soon a handover is tried again that was not possible.
	handoverRetry = 5 * time.Millisecond
	// wordsSaved is how many lines of a server's stderr are remembered for error messages, as its process goes on.
	wordsSaved = 200
)

// ErrNoHandover wraps the reason why a proxy cannot be handed over, or not yet.
var ErrNoHandover = errors.New("no moment for it")

// HandOver saves the proxy as soon as its server serves alone, and gives it to exec, on the loop's goroutine, while
// nothing moves. exec does not return if it succeeds. If it fails, or ctx ends before there is a moment for it, everything
// goes on as before. Requests in flight are not waited for. Any goroutine.
func (p *Proxy) HandOver(ctx context.Context, exec func(*Saved) error) error {
	if !wire.HandsOver {
		return errors.ErrUnsupported
	}
	for {
		var why string
		var err error
		if e := p.onLoop(func() { why, err = p.tryHandOver(exec) }); e != nil {
			return e
		}
		if why == "" {
			return err
		}
		select {
		case <-time.After(handoverRetry):
		case <-p.ended:
			return ErrEnded
		case <-ctx.Done():
			p.loop.Post(func() { p.backend.AbandonHandover(time.Now()) })
			return fmt.Errorf("%w: %s", ErrNoHandover, why)
		}
	}
}

// onLoop runs fn on the loop's goroutine and returns when it has.
func (p *Proxy) onLoop(fn func()) error {
	done := make(chan struct{})
	p.loop.Post(func() {
		defer close(done)
		fn()
	})
	select {
	case <-done:
		return nil
	case <-p.ended:
		return ErrEnded
	}
}

// tryHandOver hands over if that is possible now; otherwise it says why not.
func (p *Proxy) tryHandOver(exec func(*Saved) error) (why string, err error) {
	const busy = "it is busy"
	now := time.Now()
	if why := p.backend.PrepareHandover(now); why != "" {
		return why, nil
	}
	s, running := p.backend.Serving().(*server)
	if !p.loop.Quiet() || !running || len(p.servers) != 1 || p.servers[0] != s {
		return busy, nil
	}
	release, ok := s.process.Hold()
	if !ok {
		return "the server is ending", nil
	}
	defer release()
	defer s.pauseStderr()()
	// Whatever goroutines have brought so far must be dealt with first: nobody will, afterwards.
	if !p.loop.Quiet() || p.clientGone {
		return busy, nil
	}
	err = exec(p.save(s, now))
	p.backend.AbandonHandover(time.Now())
	return "", err
}

// pauseStderr stops the reader of the server's stderr between two reads, until the returned function is called.
func (s *server) pauseStderr() (resume func()) {
	from := s.process.Stderr()
	if from.SetReadDeadline(time.Now()) != nil {
		return func() {} // it is closed
	}
	select {
	case <-s.silent:
		return func() {}
	case <-s.paused:
	}
	return func() {
		_ = from.SetReadDeadline(time.Time{}) // only a closed file refuses, and this one is open
		s.resumed <- struct{}{}
	}
}

func (p *Proxy) save(s *server, now time.Time) *Saved {
	out := &Saved{
		At: now.Round(0), In: p.in.Save(), Out: p.client.Save(),
		Server: savedServer{
			Process: s.process.Save(), Input: s.input.Save(), Output: s.output.Save(), Env: s.env,
			Direct: s.direct, Ready: s.ready, Words: s.words.Tail(wordsSaved), Marker: s.marker.Matched(),
		},
		Keeper: child.SaveKeeper(), Backend: p.backend.Save(),
		NoShortcut: p.shortcut.off, Shortcut: p.shortcut.command,
	}
	if at := s.spokeAt.Load(); at != nil {
		out.Server.SpokeAt = *at
	}
	return out
}

// Resume prepares a proxy that goes on where the one that was saved stood, in the same process. opts.In and opts.Out are
// not used. Nothing moves before [Proxy.Run].
func Resume(opts Options, saved *Saved) (*Proxy, error) {
	rebase(saved, saved.At, time.Now())
	opts.In, opts.Out = wire.Reopen(saved.In.FD, "stdin"), wire.Reopen(saved.Out.FD, "stdout")
	p, err := New(opts)
	if err != nil {
		return nil, err
	}
	if err := child.RestoreKeeper(saved.Keeper); err != nil {
		return nil, err
	}
	s, start, err := p.restoreServer(saved)
	if err != nil {
		return nil, fmt.Errorf("take over the server: %w", err)
	}
	p.shortcut.off, p.shortcut.command = saved.NoShortcut, saved.Shortcut
	p.begin = func(now time.Time) {
		p.client.Resume(saved.Out)
		p.in.Resume(saved.In)
		p.join(s)
		s.input.Resume(saved.Server.Input)
		s.output.Resume(saved.Server.Output)
		close(start)
		p.backend = backend.Restore(p.opts.Backend, (*world)(p), p.sink(), saved.Backend, s, now)
		if s.ready {
			p.findShortcut(s.gen)
		}
	}
	return p, nil
}

// restoreServer makes the saved process a server again. Its end is told only after start was closed.
func (p *Proxy) restoreServer(saved *Saved) (s *server, start chan struct{}, err error) {
	from := saved.Server
	s = p.newServer(saved.Backend.Process.Gen)
	s.env, s.direct, s.ready = from.Env, from.Direct, from.Ready
	s.marker.Resume(from.Marker)
	if len(from.Words) > 0 {
		_, _ = s.words.Write([]byte(strings.Join(from.Words, "\n") + "\n")) // into memory
	}
	if !from.SpokeAt.IsZero() {
		s.spokeAt.Store(&from.SpokeAt)
	}
	fds := from.Process.Files
	streams := [3]*os.File{wire.Reopen(fds[0], "stdin"), wire.Reopen(fds[1], "stdout"), os.NewFile(uintptr(fds[2]), "stderr")}
	start = make(chan struct{})
	s.process, err = child.Restore(from.Process, streams, func(st child.Status) {
		<-start
		p.gone(s, st)
	})
	return s, start, err
}
