package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

const (
	// demoEndPatience is how long outlive may take to leave when the client has.
	demoEndPatience = 5 * time.Second
	// demoStderrLines is how many of outlive's last lines a failed demo shows.
	demoStderrLines = 20
)

// demoProcess is this same program as `outlive run`, in a directory of its own, with a client on its stdin and stdout.
type demoProcess struct {
	*mcptest.Client
	cmd    *exec.Cmd
	dir    string
	stderr *logline.Kept // in memory only
}

// startDemo starts it with the built-in server behind it.
func startDemo() (p *demoProcess, err error) {
	dir, err := os.MkdirTemp("", "outlive-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	server, env := mcptest.Command("-name", "demo")
	cmd := exec.Command(server[0], append([]string{"run", "--name", "demo", "--"}, server...)...)
	cmd.Dir = dir // the restart marker file is written there
	cmd.Env = append(append(os.Environ(), env...), "OUTLIVE_STATE_HOME="+filepath.Join(dir, "state"), "XDG_RUNTIME_DIR=")
	p = &demoProcess{cmd: cmd, dir: dir, stderr: logline.OpenKept("", logline.KeptOptions{})}
	cmd.Stderr = p.stderr
	cmd.WaitDelay = time.Second // for a stderr that somebody holds open
	in, err := cmd.StdinPipe()
	out, wrong := cmd.StdoutPipe()
	if err := errors.Join(err, wrong); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", server[0], err)
	}
	p.Client = mcptest.NewClient(mcptest.Join(out, in))
	return p, nil
}

// end closes the connection as a client does, waits until outlive and its server are gone, and removes the directory.
func (p *demoProcess) end() error {
	_ = p.CloseWrite() // outlive may be gone already
	stop := time.AfterFunc(demoEndPatience, func() { _ = p.cmd.Process.Kill() })
	<-p.Done() // before Wait, which closes what is read from
	err := p.cmd.Wait()
	late := !stop.Stop()
	_ = p.Client.Close() // both directions are closed by now
	if errors.Is(err, exec.ErrWaitDelay) || errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	switch {
	case late:
		err = fmt.Errorf("outlive did not end within %s", demoEndPatience)
	case err != nil:
		err = fmt.Errorf("outlive ended: %w", err)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// screen shows lines, and on a terminal a last one that is rewritten. One goroutine uses it.
type screen struct {
	out      io.Writer
	terminal bool
	width    int         // of the live line that stands there, in characters
	failed   func(error) // is told of a line that could not be written; nil: nobody is
}

func newScreen(out *os.File) *screen {
	st, err := out.Stat()
	return &screen{out: out, terminal: err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

func (s *screen) line(text string) {
	s.wipe()
	if _, err := fmt.Fprintln(s.out, text); err != nil && s.failed != nil {
		s.failed(err)
	}
}

// live shows a line that the next one takes the place of; only on a terminal.
func (s *screen) live(text string) {
	if !s.terminal {
		return
	}
	s.wipe()
	fmt.Fprint(s.out, text)
	s.width = utf8.RuneCountInString(text)
}

// wipe overwrites the live line with blanks, which every terminal understands.
func (s *screen) wipe() {
	if s.width > 0 {
		fmt.Fprint(s.out, "\r"+strings.Repeat(" ", s.width)+"\r")
		s.width = 0
	}
}
