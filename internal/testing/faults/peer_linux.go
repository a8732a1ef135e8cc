package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Times of a peer's cell. Peers differ in what they wait for, and some do for ever.
const (
	peerStop  = 15 * time.Second // until a peer that was asked to end is called one that does not
	peerAfter = 2 * time.Second  // until who is left behind a dead peer, or of a dead server, is called left
)

// Peer is another supervisor.
type Peer struct {
	Name     string // the program's, too
	Detail   string // how it is used here
	Path     string // "" when it is not installed
	Version  string
	restarts bool
	// prepare writes what the peer needs into dir and returns its arguments.
	prepare func(dir string, server []string) ([]string, error)
}

// Peers are the supervisors that ours stands beside. Those that find has no path for are in the list too.
func Peers(find func(name string) (path, version string)) []Peer {
	list := []Peer{
		{Name: "supervisord", Detail: "autorestart=true", restarts: true, prepare: supervisord},
		{Name: "s6-supervise", Detail: "a run script", restarts: true, prepare: runScript},
		{Name: "runsv", Detail: "runit; a run script", restarts: true, prepare: runScript},
		{Name: "pm2-runtime", Detail: "start --interpreter none", restarts: true, prepare: pm2},
		{Name: "tini", Detail: "-s -g", prepare: func(_ string, server []string) ([]string, error) {
			return append([]string{"-s", "-g", "--"}, server...), nil
		}},
	}
	for i := range list {
		list[i].Path, list[i].Version = find(list[i].Name)
		if list[i].Version == "" {
			list[i].Version = "version unknown"
		}
	}
	return list
}

func runScript(dir string, server []string) ([]string, error) {
	service := filepath.Join(dir, "service")
	if err := os.Mkdir(service, 0o700); err != nil {
		return nil, err
	}
	script := "#!/bin/sh\nexec"
	for _, word := range server {
		script += " '" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return []string{service}, os.WriteFile(filepath.Join(service, "run"), []byte(script+"\n"), 0o700)
}

func supervisord(dir string, server []string) ([]string, error) {
	words := make([]string, len(server))
	for i, word := range server {
		words[i] = strconv.Quote(strings.ReplaceAll(word, "%", "%%"))
	}
	config := filepath.Join(dir, "supervisord.conf")
	text := fmt.Sprintf("[supervisord]\nnodaemon=true\nlogfile=%[1]s/log\npidfile=%[1]s/pid\nchildlogdir=%[1]s\nuser=%[3]s\n[program:victim]\ncommand=%[2]s\nautorestart=true\n",
		dir, strings.Join(words, " "), strconv.Itoa(os.Getuid()))
	return []string{"-n", "-c", config}, os.WriteFile(config, []byte(text), 0o600)
}

func pm2(_ string, server []string) ([]string, error) {
	return append([]string{"start", server[0], "--interpreter", "none", "--"}, server[1:]...), nil
}

// peerCell is one running peer with its server.
type peerCell struct {
	peer   Peer
	token  string
	cmd    *exec.Cmd
	gone   chan struct{}
	starts string
}

// Run does one cell with a peer: one of [PeerFaults]. The server's stdin is empty, and it does not end for that.
func (p Peer) Run(ctx context.Context, victim []string, fault Fault, shape Shape) (Result, error) {
	r := Result{Fault: fault, Shape: shape.Name}
	c, err := p.open(ctx, victim, shape)
	if c != nil {
		defer c.close()
	}
	if err == nil {
		err = c.suffer(ctx, fault, &r)
	}
	if err != nil {
		said, _ := os.ReadFile(filepath.Join(c.token, "said"))
		return r, fmt.Errorf("%s: %s, %s: %w; it said:\n%s", p.Name, fault, shape.Name, err, said)
	}
	return r, nil
}

func (p Peer) open(ctx context.Context, victim []string, shape Shape) (*peerCell, error) {
	token, err := os.MkdirTemp("", "ofm")
	if err != nil {
		return nil, fmt.Errorf("make scratch directory: %w", err)
	}
	c := &peerCell{peer: p, token: token, gone: make(chan struct{}), starts: filepath.Join(token, "starts")}
	said, err := os.Create(filepath.Join(token, "said"))
	if err != nil {
		return c, fmt.Errorf("make log: %w", err)
	}
	defer said.Close()
	args, err := p.prepare(token, shape.command(victim, token, "-starts", c.starts, "-ignore-eof"))
	if err != nil {
		return c, fmt.Errorf("prepare: %w", err)
	}
	c.cmd = exec.Command(p.Path, args...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = token, said, said
	c.cmd.Env = append(os.Environ(), "PM2_HOME="+token, "HOME="+token)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // some signal their own group
	if err := c.cmd.Start(); err != nil {
		c.cmd = nil
		return c, fmt.Errorf("start: %w", err)
	}
	go func() {
		defer close(c.gone)
		_ = c.cmd.Wait() // how it ends is not judged
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c, awaitLines(ctx, c.starts, 1)
}

// close ends the peer and everything that it leaves.
func (c *peerCell) close() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		<-c.gone
	}
	sweep(c.token)
	_ = os.RemoveAll(c.token)
}

// theirs are the processes of this cell that descend from the server's command: what a peer starts for itself may have
// the directory among its arguments as well.
func (c *peerCell) theirs() []process {
	return slices.DeleteFunc(withToken(c.token, os.Getpid(), c.cmd.Process.Pid), func(p process) bool { return !slices.Contains(p.argv, VictimArg) })
}

// started are the pids that the cell's servers had.
func (c *peerCell) started() []int {
	text, err := os.ReadFile(c.starts)
	if err != nil {
		return nil
	}
	var pids []int
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (c *peerCell) suffer(ctx context.Context, fault Fault, r *Result) error {
	pids := c.started()
	old := familyOf(c.theirs(), pids[len(pids)-1])
	r.Before = len(old)
	begin := time.Now()
	switch fault {
	case ServerKilled:
		_ = unix.Kill(pids[len(pids)-1], unix.SIGKILL)
		if c.peer.restarts {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if awaitLines(ctx, c.starts, len(pids)+1) == nil {
				r.Back = time.Since(begin)
			} else {
				r.Note = "not restarted within " + brief(patience)
			}
		}
	case Terminated:
		_ = c.cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-c.gone:
		case <-time.After(peerStop):
			r.Note = "does not end within " + brief(peerStop)
		case <-ctx.Done():
			return ctx.Err()
		}
	case Killed:
		_ = c.cmd.Process.Kill()
		<-c.gone
	}
	left, gone := untilNone(begin, peerAfter, func() []process { return still(old) })
	r.Left, r.Gone = lines(left), gone
	return nil
}
