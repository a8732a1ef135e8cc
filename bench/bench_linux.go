package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// patience is how long anything may take that must happen.
const patience = 60 * time.Second

const mebibyte = 1 << 20

// bench is one run of a part: what is measured, and where its progress goes.
type bench struct {
	options
	root             string   // of the module
	dir              string   // scratch
	env              []string // of what speaks stdio: state of its own
	echo             string   // the server that is measured, and the byte relay
	self             string   // this program
	plan             plan
	crowd            crowdPlan // of the gateways
	measuredGateways []gateway
	ownRows          faultRows // of outlive, to stand beside others
	say              func(format string, args ...any)

	mu       sync.Mutex
	homes    int
	missing  []string
	failures []string
}

// fail notes what could not be measured; the run goes on.
func (b *bench) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.say("FAILED: %s", text)
	text, _, _ = strings.Cut(text, "\n")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, fmt.Sprintf("%.200s", text))
}

// home makes a directory that no program before has used.
func (b *bench) home() (string, error) {
	b.mu.Lock()
	b.homes++
	dir := filepath.Join(b.dir, strconv.Itoa(b.homes))
	b.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a home: %w", err)
	}
	return dir, nil
}

// environment keeps what outlive writes out of the user's directories.
func environment(dir string, more ...string) []string {
	return append(append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir), more...)
}

// peer is the path and the version of another program that bench/peers.sh has installed; false without it.
func (b *bench) peer(name string) (path, version string, found bool) {
	path = filepath.Join(b.installed, "bin", name)
	if _, err := os.Stat(path); b.installed == "" || err != nil {
		return "", "", false
	}
	text, _ := os.ReadFile(filepath.Join(b.installed, "versions")) // without it the report says nothing of versions
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(strings.TrimSpace(line), name+" "); is {
			version = rest
		}
	}
	return path, version, true
}

// process is a started program.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  *os.File      // what it says
	gone  chan struct{} // closed when it has ended
	began time.Time
}

// command is how a program is started. What it writes goes to a file, but for stdout if that has a place of its own.
type command struct {
	name          string
	argv, env     []string
	dir           string
	stdin, stdout *os.File
}

func (b *bench) launch(c command) (*process, error) {
	log, err := os.CreateTemp(b.dir, "log-*")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, log, log
	if c.stdin != nil {
		cmd.Stdin = c.stdin
	}
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	}
	p := &process{name: c.name, cmd: cmd, said: log, gone: make(chan struct{}), began: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		_ = cmd.Wait() // how a program ends is judged by its answers
		close(p.gone)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end asks the program to end, and makes it end when that takes longer than limit.
func (p *process) end(limit time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.await(limit)
}

// await waits until the program has ended, and kills it after limit.
func (p *process) await(limit time.Duration) {
	select {
	case <-p.gone:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	_ = errors.Join(p.said.Close(), os.Remove(p.said.Name()))
}

// lastWords is the end of what the program has said, for an error.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.said.Name())
	if err != nil || len(text) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "; it said last: " + strings.Join(lines[max(len(lines)-8, 0):], "\n  ")
}

// errNoPort means that of a hundred ports none was free.
var errNoPort = errors.New("no port is free")

// errEnded means that a program ended before it answered, or listened.
var errEnded = errors.New("it has ended")

// freeAddress has a port below those that the system hands out by itself, so that no other program takes it first.
func freeAddress() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20_000+rand.IntN(10_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errNoPort
}

// listens waits until the program listens at an address.
func (p *process) listens(address string) error {
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.gone:
			return fmt.Errorf("start %s: %w%s", p.name, errEnded, p.lastWords())
		case <-time.After(time.Millisecond):
		}
		if time.Since(p.began) > patience {
			return fmt.Errorf("start %s: %w%s", p.name, err, p.lastWords())
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// busy says what the machine does.
func (b *bench) busy() string { return "load " + proc.LoadAverage() }

// progressEvery is how often progress is told where lines cannot be overwritten.
const progressEvery = 5 * time.Second

// newProgress returns a function that shows one line at a time: over the last one on a terminal; elsewhere below it, each
// stage's first and then one now and then.
func newProgress(to *os.File) func(format string, args ...any) {
	info, err := to.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	var mu sync.Mutex
	stage, told, begin := "", time.Time{}, time.Now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		line := fmt.Sprintf("%4.0f s  "+format, append([]any{time.Since(begin).Seconds()}, args...)...)
		switch {
		case terminal:
			fmt.Fprintf(to, "\r\x1b[K%s", line)
		case format != stage || time.Since(told) >= progressEvery:
			fmt.Fprintln(to, line)
			stage, told = format, time.Now()
		}
	}
}
