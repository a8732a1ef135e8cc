package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// Saved is a running host in a form that can be kept as JSON. Another image of this program, executed in place of this
// one, goes on with it.
type Saved struct {
	Server  savedServer
	Keeper  child.SavedKeeper
	Backend backend.Saved

	NoShortcut bool
	Shortcut   *launcher.Command
}

// savedServer is the serving process with its pipes.
type savedServer struct {
	Process child.SavedProcess
	Input   lineloop.SavedSink
	Output  lineloop.SavedSource
	Env     []string
	Direct  bool
	Ready   bool
	Words   []string // its last words on stderr
	Marker  int      // bytes of a restart marker its stderr ends with
	SpokeAt time.Time
}

// Descriptors are those that the next image needs: they must be made inheritable.
func (s *Saved) Descriptors() []int {
	return append(s.Server.Process.Descriptors(), s.Keeper.Descriptors()...)
}

// wordsSaved is how many lines of a server's stderr are remembered for error messages, as its process goes on.
const wordsSaved = 200

// ErrNoHandover is returned for a server elsewhere: its connection cannot be given to another image.
var ErrNoHandover = errors.New("not possible for a server at a URL: restart the client instead")

// busy is why there is no handover while anything moves.
const busy = "it is busy"

// HandOver saves the host if its server serves alone, and gives it to exec while nothing moves. exec does not return if it
// succeeds; if it fails, everything goes on as before. why is the reason if this is not the moment. quiet is asked whether
// nothing has come in meanwhile. Loop goroutine.
func (h *Host) HandOver(quiet func() bool, exec func(*Saved) error) (why string, err error) {
	if h.opts.Remote != nil {
		return "", ErrNoHandover
	}
	now := time.Now()
	if why := h.Backend.PrepareHandover(now); why != "" {
		return why, nil
	}
	s, running := h.Backend.Serving().(*server)
	if !quiet() || !running || len(h.servers) != 1 || h.servers[0] != s {
		return busy, nil
	}
	release, ok := s.process.Hold()
	if !ok {
		return "the server is ending", nil
	}
	defer release()
	defer s.pauseStderr()()
	// Whatever goroutines have brought so far must be dealt with first: nobody will, afterwards.
	if !quiet() {
		return busy, nil
	}
	h.news.tell()
	err = exec(h.save(s))
	h.Backend.AbandonHandover(time.Now())
	return "", err
}

// pauseStderr stops the reader of the server's stderr between two reads, until the returned function is called.
func (s *server) pauseStderr() (resume func()) {
	from := s.process.Stderr()
	if from.SetReadDeadline(time.Now()) != nil {
		return func() {} // it is closed
	}
	select {
	case s.pausing <- struct{}{}:
	default: // it has ended before it took the last one
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

func (h *Host) save(s *server) *Saved {
	out := &Saved{
		Server: savedServer{
			Process: s.process.Save(), Input: s.input.Save(), Output: s.output.Save(), Env: s.env,
			Direct: s.direct, Ready: s.ready, Words: s.words.Tail(wordsSaved), Marker: s.marker.Matched(),
		},
		Keeper: child.SaveKeeper(), Backend: h.Backend.Save(),
		NoShortcut: h.shortcut.off, Shortcut: h.shortcut.command,
	}
	if at := s.spokeAt.Load(); at != nil {
		out.Server.SpokeAt = *at
	}
	return out
}

// Resume makes a new host go on where the saved one stood, in the same process, once begin is called on the loop's
// goroutine. Nothing moves before that.
func (h *Host) Resume(saved *Saved) (begin func(now time.Time), err error) {
	if err := child.RestoreKeeper(saved.Keeper); err != nil {
		return nil, err
	}
	s, start, err := h.restoreServer(saved)
	if err != nil {
		return nil, fmt.Errorf("take over the server: %w", err)
	}
	h.shortcut.off, h.shortcut.command = saved.NoShortcut, saved.Shortcut
	return func(now time.Time) {
		h.servers = append(h.servers, s)
		h.join(s)
		s.input.Resume(saved.Server.Input)
		s.output.Resume(saved.Server.Output)
		close(start)
		h.Backend = backend.Restore(h.opts.Backend, (*world)(h), h.sink(), saved.Backend, s, now)
		if s.ready {
			h.findShortcut(s.gen)
		}
	}, nil
}

// restoreServer makes the saved process a server again. Its end is told only after start was closed.
func (h *Host) restoreServer(saved *Saved) (s *server, start chan struct{}, err error) {
	from := saved.Server
	s = h.newServer(saved.Backend.Process.Gen)
	s.env, s.direct, s.ready = from.Env, from.Direct, from.Ready
	s.marker.Resume(from.Marker)
	if len(from.Words) > 0 {
		_, _ = s.words.Write([]byte(strings.Join(from.Words, "\n") + "\n")) // into memory
	}
	if !from.SpokeAt.IsZero() {
		s.spokeAt.Store(&from.SpokeAt)
	}
	fds := from.Process.Files
	streams := [3]*os.File{lineloop.Reopen(fds[0], "stdin"), lineloop.Reopen(fds[1], "stdout"), os.NewFile(uintptr(fds[2]), "stderr")}
	start = make(chan struct{})
	s.process, err = child.Restore(from.Process, streams, func(st child.Status) {
		<-start
		h.gone(s, st)
	})
	return s, start, err
}
