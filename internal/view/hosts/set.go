package hosts

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	answerLimit = 8 << 20                // bytes of one answer
	valuesMost  = 250_000                // values of one answer: each may take much more memory than it has bytes
	atOnce      = 64                     // hosts are connected to
	stderrKept  = 8 << 10                // bytes of the end of what a program says
	lettingGo   = 500 * time.Millisecond // how long what ssh leaves behind, such as a shared connection, may hold our pipes
)

// Options are a set's settings.
type Options struct {
	// SSH is the program with its first arguments; empty: ssh.
	SSH []string
	// Self is the program of this machine, for [Local].
	Self string
	// Version is this outlive's.
	Version string
	// Limit is how long a host has to answer, and how long a stream may be silent; 0: 10 s, enough for a slow link with a jump
	// host, and short enough to wait for.
	Limit time.Duration
	// Carrier brings commands to all hosts but [Local], in place of ssh; nil: ssh does.
	Carrier Carrier
}

// Set asks hosts.
type Set struct {
	Hosts []Host
	// Partial says that hosts may be missing: who knows them did not tell of all.
	Partial bool

	opts  Options
	slots chan struct{}
}

// NewSet returns a set of hosts.
func NewSet(list []Host, opts Options) *Set {
	if len(opts.SSH) == 0 {
		opts.SSH = []string{"ssh"}
	}
	opts.Limit = cmp.Or(opts.Limit, 10*time.Second)
	return &Set{Hosts: list, opts: opts, slots: make(chan struct{}, atOnce)}
}

// Limit is how long a host has to answer.
func (s *Set) Limit() time.Duration { return s.opts.Limit }

// Of is the set with only that host of it.
func (s *Set) Of(h Host) *Set { return &Set{Hosts: []Host{h}, opts: s.opts, slots: s.slots} }

// Within is the set with another limit.
func (s *Set) Within(limit time.Duration) *Set {
	o := s.opts
	o.Limit = limit
	return &Set{Hosts: s.Hosts, Partial: s.Partial, opts: o, slots: s.slots}
}

// Named returns the host that is called so.
func (s *Set) Named(name string) (Host, bool) {
	for _, h := range s.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// Answer is what one host said.
type Answer struct {
	Host    Host
	Version string // of the outlive there; "": not known
	Out     []byte // what it wrote to stdout, also if it failed
	Err     error  // a [*Failure]
}

// Differs reports that another version of outlive is there.
func (s *Set) Differs(version string) bool { return version != "" && version != s.opts.Version }

// Ask runs outlive with these arguments on every host, and calls each with every answer as it comes, from one goroutine at a
// time. It returns when all have answered or their time is over.
func (s *Set) Ask(ctx context.Context, args []string, each func(Answer)) {
	var asked sync.WaitGroup
	var telling sync.Mutex
	for _, h := range s.Hosts {
		asked.Go(func() {
			var out bytes.Buffer
			a := s.Run(ctx, h, Command{Args: args, Out: &out, Most: answerLimit})
			a.Out = out.Bytes()
			telling.Lock()
			defer telling.Unlock()
			each(a)
		})
	}
	asked.Wait()
}

// ErrTooMuch says that an answer is larger than anything a machine has to say.
var ErrTooMuch = errors.New("it says more than is read of one machine")

// Decode reads JSON that another machine has written. Its size and the number of its values have bounds: a few bytes can be lists of
// a million entries.
func Decode(text []byte, v any) error {
	if len(text) > answerLimit || bytes.Count(text, []byte(",")) > valuesMost {
		return ErrTooMuch
	}
	return json.Unmarshal(text, v)
}

// Command is what is run on a host.
type Command struct {
	Args []string
	Out  io.Writer // what outlive writes to stdout
	// Errs gets what is written to stderr once outlive runs there; before that, and with nil, it is only kept for the error.
	Errs io.Writer
	// Lasting says that the limit is until outlive has said its version, and not until it has ended.
	Lasting bool
	Most    int // bytes of output; 0: any number
	// begun is called when outlive has said its version; nil: not called.
	begun func()
}

// Carrier brings commands to hosts in another way than ssh.
type Carrier interface {
	// Carry runs outlive on a host and hands on what it writes, first the line "outlive VERSION". The error is a [*Failure] if outlive
	// there has failed, or could not be reached. out and errs are written by one goroutine.
	Carry(ctx context.Context, host string, args []string, out, errs io.Writer) error
}

var errLate = errors.New("too late")

// Run runs outlive on one host once there is room. The room is given back at its first word, or at its end.
func (s *Set) Run(ctx context.Context, h Host, c Command) Answer {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return Answer{Host: h, Err: ctx.Err()}
	}
	give := sync.OnceFunc(func() { <-s.slots })
	defer give()
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(s.opts.Limit, func() { cancel(errLate) })
	defer timer.Stop()
	said := &stderr{to: c.Errs}
	first := &opening{out: c.Out, most: c.Most, errs: said, spoke: h.Local()}
	first.heard = func() { // a lasting command has no limit any more
		give()
		if c.begun != nil {
			c.begun()
		}
		if c.Lasting {
			timer.Stop()
		}
	}
	if h.Local() {
		first.version = s.opts.Version
		said.open()
	}
	err := s.carry(one, h, c.Args, first, said)
	a := Answer{Host: h, Version: first.version}
	switch {
	case err == nil && first.spoke:
	case ctx.Err() != nil:
		a.Err = ctx.Err()
	case errors.Is(context.Cause(one), errLate):
		a.Err = silent(s.opts.Limit, said.String())
	case first.full:
		a.Err = &Failure{Kind: Unreadable, Text: "its answer is too long"}
	case err == nil:
		a.Err = &Failure{Kind: Unreadable, Text: "it did not say which version of outlive it is" + after(lastLines(said.String()))}
	default:
		a.Err = failureOf(h, err, said.String(), first.spoke)
	}
	return a
}

// carry runs outlive by the carrier, by ssh or here, and returns when it has ended.
func (s *Set) carry(ctx context.Context, h Host, args []string, out, errs io.Writer) error {
	if s.opts.Carrier != nil && !h.Local() {
		return s.opts.Carrier.Carry(ctx, h.Name, args, out, errs)
	}
	cmd := s.command(ctx, h, args)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, errs, lettingGo
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // ssh has ended well, and left its shared connection behind
		return nil
	}
	return err
}

// command is ssh with the host and the remote command, or outlive itself.
func (s *Set) command(ctx context.Context, h Host, args []string) *exec.Cmd {
	if h.Local() {
		return inGroup(exec.CommandContext(ctx, s.opts.Self, args...))
	}
	// Questions would be asked on a terminal that others use: BatchMode. What the user has configured for sessions of his own, and
	// what would be in the way of ours or give the host more than it needs, is left out: a command, forwarded ports, the agent.
	words := append(s.opts.SSH[1:len(s.opts.SSH):len(s.opts.SSH)], "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "RemoteCommand=none",
		"-o", "ClearAllForwardings=yes", "--", h.Name, script(h.Program, args))
	return inGroup(exec.CommandContext(ctx, s.opts.SSH[0], words...))
}

// Terminal is outlive on one host with the terminal of whoever starts it: of the user, whom ssh may ask.
func (s *Set) Terminal(h Host, args []string) *exec.Cmd {
	if h.Local() {
		return exec.Command(s.opts.Self, args...)
	}
	words := append(s.opts.SSH[1:len(s.opts.SSH):len(s.opts.SSH)], "-t", "-o", "RemoteCommand=none", "--", h.Name, found(h.Program, args, `exec "$@"`))
	return exec.Command(s.opts.SSH[0], words...)
}

// opening passes on what follows the line with the version, and drops what a shell's start-up files print before it.
type opening struct {
	out     io.Writer
	most    int // bytes; 0: any number
	heard   func()
	errs    *stderr
	spoke   bool
	version string
	line    []byte
	written int
	full    bool
}

const versionLine = "outlive "

func (o *opening) Write(p []byte) (int, error) {
	n := len(p)
	for !o.spoke && len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if o.line = append(o.line, line...); !whole {
			o.line = o.line[:min(len(o.line), stderrKept)]
			return n, nil
		}
		if v, ok := strings.CutPrefix(strings.TrimSpace(string(o.line)), versionLine); ok && !strings.Contains(v, " ") {
			o.spoke, o.version = true, v
			o.errs.open()
		}
		o.line, p = nil, rest
	}
	if o.spoke && o.heard != nil {
		o.heard()
		o.heard = nil
	}
	if len(p) == 0 {
		return n, nil
	}
	if o.written += len(p); o.most > 0 && o.written > o.most {
		o.full = true
		return 0, errors.New("too long")
	}
	if _, err := o.out.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}

// stderr keeps the end of what is written to it, and passes it on from the time on that it is opened.
type stderr struct {
	to   io.Writer // nil: it is only kept
	mu   sync.Mutex
	is   bool // open
	kept []byte
}

func (s *stderr) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is = s.to != nil; s.is {
		_, _ = s.to.Write(s.kept) // it may be gone
	}
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p...)
	s.kept = s.kept[max(0, len(s.kept)-stderrKept):]
	if s.is {
		return s.to.Write(p)
	}
	return len(p), nil
}

func (s *stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.kept)
}

const (
	lineLimit = 64 << 20 // bytes of one line of a stream
	// quietLimit is how long a stream may be silent at least, whatever the limit of an answer is: outlive watch --state says
	// something every 2 s.
	quietLimit = 10 * time.Second
)

// Follow runs outlive with these arguments on one host, and hands on each line that it writes until ctx ends, the host does, or
// nothing was heard for the limit, or 10 s if that is longer. A line is valid until the next one.
func (s *Set) Follow(ctx context.Context, h Host, args []string, each func(line []byte)) error {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	var tooQuiet atomic.Bool
	limit := max(s.opts.Limit, quietLimit)
	// It runs from the version on: until then the limit is Run's.
	quiet := time.AfterFunc(limit, func() { tooQuiet.Store(true); cancel() })
	quiet.Stop()
	defer quiet.Stop()
	ended := make(chan error, 1)
	go func() {
		a := s.Run(one, h, Command{Args: args, Out: out, Lasting: true, begun: func() { quiet.Reset(limit) }})
		_ = out.Close()
		ended <- a.Err
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		quiet.Reset(limit)
		each(lines.Bytes())
	}
	_ = in.Close() // after a line that is too long
	cancel()
	err := <-ended
	switch {
	case tooQuiet.Load():
		return silent(limit, "")
	case ctx.Err() != nil:
		return ctx.Err()
	case lines.Err() != nil:
		return &Failure{Kind: Unreadable, Text: lines.Err().Error()}
	case err == nil || errors.Is(err, context.Canceled):
		return &Failure{Kind: Unreachable, Text: "outlive watch has ended there"}
	}
	return err
}
