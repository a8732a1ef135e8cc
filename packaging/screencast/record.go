package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/creack/pty"
)

const (
	prompt  = "$ "
	columns = 96                     // of the terminal
	keyTime = 70 * time.Millisecond  // between two keys
	sampled = 250 * time.Millisecond // the picture does not change more often
)

// step is a command that is typed, and how long what it has shown stays.
type step struct {
	command string
	stays   time.Duration
}

// frame is what the terminal shows from a time on.
type frame struct {
	at    time.Duration
	lines []string
}

// recorder is one recording.
type recorder struct {
	terminal *os.File
	came     chan []byte // closed when the terminal has ended
	screen   screen
	begin    time.Time
	frames   []frame
}

// record types the steps into a shell with that home, where outlive is in .local/bin, and returns what was to be seen, and how
// long that took.
func record(ctx context.Context, home string, steps []step) ([]frame, time.Duration, error) {
	shell := exec.CommandContext(ctx, "sh", "-i")
	shell.Dir = home
	shell.Env = []string{"PS1=" + prompt, "HOME=" + home, "PATH=" + filepath.Join(home, ".local", "bin") + ":/usr/bin:/bin", "TERM=xterm", "OUTLIVE_STATE_HOME=" + filepath.Join(home, "state")}
	terminal, err := pty.StartWithSize(shell, &pty.Winsize{Rows: 40, Cols: columns})
	if err != nil {
		return nil, 0, fmt.Errorf("start a shell on a terminal: %w", err)
	}
	r := &recorder{terminal: terminal, came: make(chan []byte), begin: time.Now()}
	go r.read()
	err = r.play(ctx, steps)
	took := time.Since(r.begin)
	err = errors.Join(err, terminal.Close())
	_ = shell.Process.Kill() // it may have ended with its terminal
	_ = shell.Wait()
	for range r.came { // the reader ends
	}
	return r.frames, took, err
}

func (r *recorder) read() {
	defer close(r.came)
	for {
		b := make([]byte, 4096)
		n, err := r.terminal.Read(b)
		if n > 0 {
			r.came <- b[:n]
		}
		if err != nil {
			return
		}
	}
}

func (r *recorder) play(ctx context.Context, steps []step) error {
	for _, s := range steps {
		before := max(len(r.screen.lines)-1, 0)
		if err := r.until(ctx, time.Minute, func() bool { return r.screen.asks(before) }); err != nil {
			return err
		}
		if err := r.pass(ctx, time.Second); err != nil {
			return err
		}
		before = len(r.screen.lines)
		for _, key := range s.command + "\n" {
			if _, err := r.terminal.WriteString(string(key)); err != nil {
				return fmt.Errorf("type: %w", err)
			}
			if err := r.pass(ctx, keyTime); err != nil {
				return err
			}
		}
		if err := r.until(ctx, time.Minute, func() bool { return r.screen.asks(before) }); err != nil {
			return fmt.Errorf("%s: %w", s.command, err)
		}
		if err := r.pass(ctx, s.stays); err != nil {
			return err
		}
	}
	return nil
}

// pass lets a time pass in which the screen may change.
func (r *recorder) pass(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return r.until(ctx, d+time.Minute, func() bool { return !time.Now().Before(end) })
}

// until goes on until something has come about, for at most a time.
func (r *recorder) until(ctx context.Context, most time.Duration, come func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	look := time.NewTicker(keyTime / 2)
	defer look.Stop()
	for !come() {
		select {
		case text, ok := <-r.came:
			if !ok {
				return errors.New("the shell has ended")
			}
			if err := r.screen.write(text); err != nil {
				return err
			}
		case <-look.C:
			r.look()
		case <-ctx.Done():
			return fmt.Errorf("%w; the terminal shows %q", ctx.Err(), r.screen.shown())
		}
	}
	return nil
}

// look makes a frame of what has changed. While a line changes all the time, that is not often.
func (r *recorder) look() {
	now, lines := time.Since(r.begin), r.screen.shown()
	if len(lines) == 0 {
		return
	}
	last := len(r.frames) - 1
	if last >= 0 && slices.Equal(r.frames[last].lines, lines) {
		return
	}
	typed := strings.HasPrefix(lines[len(lines)-1], prompt)
	if last >= 0 && !typed && now-r.frames[last].at < sampled && len(r.frames[last].lines) == len(lines) {
		return
	}
	r.frames = append(r.frames, frame{now, lines})
}
