package mcptest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// startFailed is the exit status of a start that the flags made fail.
const startFailed = 3

// start does what the flags say before the first line is read. An error means that they made the start fail.
func (s *server) start() error {
	if err := s.refuseStart(); err != nil {
		return err
	}
	tools, err := s.loadTools()
	if err != nil {
		return err
	}
	s.tools = tools
	if err := s.startHolder(); err != nil {
		return err
	}
	s.flood()
	time.Sleep(s.o.slowStart)
	return nil
}

func (s *server) refuseStart() error {
	if s.o.starts != "" {
		if err := appendFile(s.o.starts, fmt.Appendf(nil, "%d\n", os.Getpid())); err != nil {
			return err
		}
		b, err := os.ReadFile(s.o.starts)
		if err != nil {
			return fmt.Errorf("count starts: %w", err)
		}
		if n := bytes.Count(b, []byte("\n")); n <= s.o.noStart {
			return fmt.Errorf("start %d of %d that fail", n, s.o.noStart)
		}
	}
	if s.o.failStartFile != "" {
		if _, err := os.Stat(s.o.failStartFile); err == nil {
			return fmt.Errorf("cannot start while %s exists", s.o.failStartFile)
		}
	}
	return nil
}

// startHolder starts the grandchild that keeps our stdout open after our end.
func (s *server) startHolder() error {
	if s.o.hold == 0 {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.Command(exe, holdArg, strconv.FormatInt(int64(s.o.hold), 10))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start grandchild: %w", err)
	}
	return nil
}

func (s *server) flood() {
	const line = "mcptest: flood .................................................................................\n"
	for left := s.o.stderrFlood; left > 0; left -= len(line) {
		fmt.Fprint(s.stderr, line[max(0, len(line)-left):])
	}
}

// ignoreSignals makes the process ignore SIGTERM and SIGINT while the server runs.
func (s *server) ignoreSignals() (stop func()) {
	if !s.o.ignoreTerm {
		return func() {}
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-heard:
				fmt.Fprintf(s.stderr, "mcptest: ignored %v\n", sig)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(heard)
		close(done)
	}
}

// crashNow decides whether the process crashes at the nth request.
func (s *server) crashNow(n int, method string) bool {
	due := (s.o.crashAfter > 0 && n >= s.o.crashAfter) || (s.o.crashOn != "" && s.o.crashOn == method)
	return due && (s.o.crashOnce == "" || createdFile(s.o.crashOnce))
}

// crash writes to stdout what -last-line says of c's answer, and kills the process at once, from inside. The answer
// is that of echo: no tool ran.
func (s *server) crash(c *call) {
	meta, enveloped := requestMeta(c.Params)
	c.modern = enveloped && meta != nil
	line := s.answerLine(c, text("last words"), nil)
	switch s.o.lastLine {
	case "half":
		s.out.fragment(line[:len(line)/2])
	case "unterminated":
		s.out.fragment(line)
	case "whole":
		s.out.fragment(append(line, '\n'))
	}
	die()
}

// die ends the process like SIGKILL.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// createdFile reports whether this call created the file: true only once for all processes.
func createdFile(path string) bool {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// appendFile appends b to the file with one write. The file is created if necessary.
func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	return nil
}
