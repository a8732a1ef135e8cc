package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// Times of a cell.
const (
	patience = 30 * time.Second // for a start, or for an answer
	limit    = 5 * time.Second  // until those who should be gone are gone
	hangTime = 6 * time.Minute  // until a health check has noticed a hang: a tick of CPU time in a helper makes it wait
)

// protocol is what the client speaks.
const protocol = "2025-11-25"

// keeperName is what outlive's keeper is called in argv[0].
const keeperName = "outlive-keeper"

// Setup is what all cells of a matrix have in common.
type Setup struct {
	Outlive []string // the program, and words before "run"
	Victim  []string // the program that calls VictimIfAsked
	Flags   []string // of outlive run
	Env     []string // added to outlive's
	// Under stands before the command of outlive, and must become it by exec: `sh -c 'ulimit …; exec "$@"'`.
	Under []string
	// State makes the directory for outlive's state. nil: an ordinary one.
	State func(dir string) (undo func(), err error)
}

// cell is one running outlive with its server.
type cell struct {
	Setup
	shape  Shape
	token  string // a directory too
	state  string
	client *mcptest.Process
	said   diary
	server int       // pid of the server that serves
	keeper []process // none, where there is none
}

// diary keeps what outlive says on stderr, for when a cell goes wrong.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.TrimSpace(d.text.String())
}

// Run does one cell. The error says that it could not be set up or that the service did not come back; processes that
// stayed are not errors but in the result.
func (s Setup) Run(ctx context.Context, fault Fault, shape Shape) (Result, error) {
	r := Result{Fault: fault, Shape: shape.Name}
	c, undo, err := s.open(ctx, shape)
	defer undo()
	if err == nil {
		err = c.suffer(ctx, fault, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s, %s: %w; outlive said:\n%s", fault, shape.Name, err, c.said.String())
	}
	return r, nil
}

// open starts outlive and waits until its server serves. undo ends everything.
func (s Setup) open(ctx context.Context, shape Shape) (c *cell, undo func(), err error) {
	c = &cell{Setup: s, shape: shape}
	done := func() {}
	undo = func() {
		if c.client != nil {
			_ = c.client.Close()
		}
		if c.token != "" {
			sweep(c.token)
			done()
			_ = os.RemoveAll(c.token)
		}
	}
	// The path of a Unix socket is short.
	if c.token, err = os.MkdirTemp("", "ofm"); err != nil {
		return c, undo, fmt.Errorf("make scratch directory: %w", err)
	}
	c.state = filepath.Join(c.token, "state")
	if s.State != nil {
		if done, err = s.State(c.state); err != nil {
			return c, undo, fmt.Errorf("make state directory: %w", err)
		}
	}
	c.client, err = c.start(ctx, c.token)
	if err == nil {
		c.server, err = serving(ctx, c.client)
	}
	if err == nil && slices.Contains(s.Flags, "--standby") {
		err = c.awaitStarts(ctx, 2)
	}
	if err == nil {
		c.keeper = processes(func(p process) bool { return p.parent == c.client.PID() && p.argv[0] == keeperName })
	}
	return c, undo, err
}

// start starts an outlive whose server has the token.
func (c *cell) start(ctx context.Context, token string) (*mcptest.Process, error) {
	argv := append(slices.Clone(c.Under), c.Outlive...)
	argv = append(append(argv, "run"), c.Flags...)
	argv = append(append(argv, "--"), c.shape.command(c.Victim, token, "-starts", filepath.Join(c.token, "starts"))...)
	env := append([]string{"XDG_STATE_HOME=" + c.state, "XDG_RUNTIME_DIR=" + c.token, "XDG_CONFIG_HOME=" + c.token, noRaceExit}, c.Env...)
	p, err := mcptest.Spawn(argv, env, &c.said)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = p.Initialize(ctx, protocol)
	if err == nil { // whoever has read the list has its calls done again, where that may be
		_, err = p.Call(ctx, "tools/list", nil)
	}
	if err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return p, nil
}

// serving asks for the pid of the server that serves.
func serving(ctx context.Context, p *mcptest.Process) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := p.Call(ctx, "tools/call", map[string]any{"name": "read", "arguments": map[string]any{}})
	if err != nil {
		return 0, fmt.Errorf("ask for the server's pid: %w", err)
	}
	var result struct {
		Content []struct{ Text string }
	}
	var id mcptest.Identity
	if err := json.Unmarshal(answer, &result); err != nil || len(result.Content) != 1 {
		return 0, fmt.Errorf("ask for the server's pid: answer %s", answer)
	}
	if err := json.Unmarshal([]byte(result.Content[0].Text), &id); err != nil {
		return 0, fmt.Errorf("ask for the server's pid: answer %s: %w", answer, err)
	}
	if id.PID <= 0 { // a signal to it would reach our own group
		return 0, fmt.Errorf("ask for the server's pid: answer %s", answer)
	}
	return id.PID, nil
}

// awaitStarts waits until so many servers of this cell have started.
func (c *cell) awaitStarts(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return awaitLines(ctx, filepath.Join(c.token, "starts"), n)
}

// awaitLines waits until a file has so many lines.
func awaitLines(ctx context.Context, path string, n int) error {
	for {
		if text, err := os.ReadFile(path); err == nil && bytes.Count(text, []byte("\n")) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for start %d of the server: %w", n, ctx.Err())
		case <-time.After(look):
		}
	}
}

// theirs are the processes of this cell that outlive started: servers and what they started.
func (c *cell) theirs() []process { return withToken(c.token, os.Getpid(), c.client.PID()) }

// ours are theirs and the keeper.
func (c *cell) ours() []process { return append(c.theirs(), still(c.keeper)...) }

// suffer does to the cell what the fault says and waits for what should follow.
func (c *cell) suffer(ctx context.Context, fault Fault, r *Result) error {
	all := c.ours()
	switch fault {
	case ServerKilled:
		return c.goesOn(ctx, r, familyOf(c.theirs(), c.server), patience, func() { _ = unix.Kill(c.server, unix.SIGKILL) })
	case KeeperKilled:
		if !c.kept(all) {
			return c.without(r, "no keeper")
		}
		return c.goesOn(ctx, r, all, patience, func() { _ = unix.Kill(c.keeper[0].pid, unix.SIGKILL) })
	case ServerHangs:
		return c.hangs(ctx, r)
	case BothKilled:
		return c.sweptByNext(ctx, r, all)
	case ClientLeaves:
		return c.ends(ctx, r, all, func() { _ = c.client.CloseWrite() })
	case HangThenLeave:
		return c.ends(ctx, r, all, func() {
			_ = unix.Kill(c.server, unix.SIGSTOP)
			_ = c.client.CloseWrite()
		})
	case Terminated:
		return c.ends(ctx, r, all, func() { _ = c.client.Signal(unix.SIGTERM) })
	case Killed:
		return c.ends(ctx, r, all, func() { _ = c.client.Kill() })
	}
	return errors.New("unknown fault")
}

// goesOn does what ends old, waits until another server answers, and ends the cell in order.
func (c *cell) goesOn(ctx context.Context, r *Result, old []process, wait time.Duration, do func()) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	begin := time.Now()
	do()
	type answer struct {
		pid  int
		back time.Duration
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		for {
			// The call may reach a server that dies over it: then it is done again, for this tool may be.
			pid, err := serving(ctx, c.client)
			if err != nil || pid != c.server {
				answers <- answer{pid, time.Since(begin), err}
				return
			}
		}
	}()
	left, gone := untilNone(begin, limit, func() []process { return still(old) })
	got := <-answers
	if got.err != nil {
		return got.err
	}
	r.Before, r.Left, r.Gone, r.Back = len(old), lines(left), gone, got.back
	return c.leave(ctx, r)
}

// leave ends the cell as a client does; whoever is left then is left in the result, too.
func (c *cell) leave(ctx context.Context, r *Result) error {
	last := Result{Fault: ClientLeaves}
	if err := c.ends(ctx, &last, c.ours(), func() { _ = c.client.CloseWrite() }); err != nil {
		return err
	}
	if len(last.Left) > 0 {
		r.Before, r.Left = r.Before+last.Before, append(r.Left, last.Left...)
		r.Note = strings.TrimPrefix(r.Note+"; some after the client had left", "; ")
	}
	return nil
}

// ends does what ends outlive and waits until nobody of all is left.
func (c *cell) ends(ctx context.Context, r *Result, all []process, do func()) error {
	begin := time.Now()
	do()
	left, gone := untilNone(begin, limit, c.ours)
	r.Before, r.Left, r.Gone = len(all), lines(left), gone
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	code, err := c.client.ExitCode(ctx)
	if err != nil {
		return err
	}
	if code != 0 && code != -1 {
		return fmt.Errorf("outlive's exit status is %d", code)
	}
	return nil
}

// kept reports whether the server's topmost process is the keeper's child.
func (c *cell) kept(all []process) bool {
	family := familyOf(all, c.server)
	return slices.ContainsFunc(c.keeper, func(k process) bool {
		return slices.ContainsFunc(family, func(p process) bool { return p.parent == k.pid })
	})
}

// without ends a cell that has nothing to be killed.
func (c *cell) without(r *Result, note string) error {
	r.Note = note
	return c.client.CloseWrite()
}
