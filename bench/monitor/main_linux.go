package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
)

const (
	beatEvery = 2 * time.Minute
	// settled is how long the monitor has before it is measured: its first look learns everything.
	settled = 20 * time.Second
	ticks   = 100 // of the kernel's count of processor time, in a second
	pause   = 20 * time.Millisecond
	// apart is the time between two ends: agents that end together are one incident, and one of them is tried first.
	apart = 40 * time.Second
	// patience is how long a start is waited for.
	patience = time.Minute
)

func main() {
	outlive := flag.String("outlive", "outlive", "the program that is measured")
	agents := flag.Int("agents", 2000, "how many agents there are")
	measured := flag.Duration("for", time.Minute, "how long the processor's time is counted")
	kills := flag.Int("kills", 3, "how many agents are ended, one after the other")
	flag.Parse()
	if err := run(*outlive, *agents, *kills, *measured); err != nil {
		fmt.Fprintln(os.Stderr, "monitor:", err)
		os.Exit(1)
	}
}

// crowd is a home with agents, and their processes.
type crowd struct {
	home   string
	agents []*exec.Cmd
	next   int       // whose beat is due
	begun  time.Time // when the first beat was written
}

func run(outlive string, count, kills int, measured time.Duration) error {
	home, err := os.MkdirTemp("", "outlive-monitor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	c := &crowd{home: home}
	defer c.end()
	if err := c.begin(count); err != nil {
		return err
	}
	watcher := exec.Command(outlive, "monitor", "--home", home)
	watcher.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "TELEGRAM_") })
	var said bytes.Buffer
	watcher.Stderr = &said
	if err := watcher.Start(); err != nil {
		return err
	}
	defer func() {
		_ = watcher.Process.Signal(syscall.SIGTERM)
		_ = watcher.Wait()
	}()
	if err := c.beat(settled); err != nil {
		return err
	}
	before, err := cpu(watcher.Process.Pid)
	if err != nil {
		return errors.Join(err, errors.New(said.String()))
	}
	from := time.Now()
	if err := c.beat(measured); err != nil {
		return err
	}
	took := time.Since(from)
	after, err := cpu(watcher.Process.Pid)
	if err != nil {
		return err
	}
	private, resident, err := memory(watcher.Process.Pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d agents: %.2f %% of a core over %s, %.0f MB of its own, %.0f MB resident\n", count, 100*(after-before).Seconds()/took.Seconds(), took.Round(time.Second), private, resident)
	for n := range kills {
		if err := c.beat(apart); err != nil {
			return err
		}
		late, err := c.kill(n * (count / kills))
		if err != nil {
			return err
		}
		fmt.Printf("agent %d was ended: started again after %.1f s\n", n*(count/kills), late.Seconds())
	}
	return nil
}

func (c *crowd) name(n int) string { return fmt.Sprintf("agent%04d", n) }

// begin declares the agents and starts their processes. Whoever is started again leaves a file.
func (c *crowd) begin(count int) error {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	text := "version: 2\nagents:\n"
	for n := range count {
		dir := filepath.Join(c.home, "work", c.name(n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		text += fmt.Sprintf("  %s:\n    path: %s\n    kind: command\n    match: {pidfile: pid}\n    expect: {beat: 2m}\n    start: {cmd: [touch, started]}\n", c.name(n), dir)
		cmd := &exec.Cmd{Path: sleep, Args: []string{"agent", "3600"}, Dir: dir}
		if err := cmd.Start(); err != nil {
			return err
		}
		c.agents = append(c.agents, cmd)
		if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			return err
		}
		if err := c.write(n); err != nil {
			return err
		}
	}
	c.begun = time.Now()
	return os.WriteFile(filepath.Join(c.home, "registry.yaml"), []byte(text), 0o600)
}

func (c *crowd) write(n int) error {
	return heartbeat.Write(monitor.BeatDir(c.home), heartbeat.Observation{Agent: c.name(n), Wall: time.Now(), State: heartbeat.Working})
}

// beat writes the beats that are due in a time, evenly, as agents that began at different times do.
func (c *crowd) beat(d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
		for due := int(time.Since(c.begun) * time.Duration(len(c.agents)) / beatEvery); c.next < due; c.next++ {
			if err := c.write(c.next % len(c.agents)); err != nil {
				return err
			}
		}
	}
	return nil
}

// kill ends an agent, and waits until it is started again.
func (c *crowd) kill(n int) (time.Duration, error) {
	cmd, begin := c.agents[n], time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for time.Since(begin) < patience {
		if _, err := os.Stat(filepath.Join(cmd.Dir, "started")); err == nil {
			return time.Since(begin), nil
		}
		if err := c.beat(pause); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("agent %d was not started again within %s", n, patience)
}

func (c *crowd) end() {
	for _, cmd := range c.agents {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

// cpu is the processor time that a process has used.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var sum int
	for _, at := range []int{11, 12} { // utime and stime, behind the name
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

// memory is what a process has for itself alone, and all that it has in memory, in MB of 2^20 bytes.
func memory(pid int) (private, resident float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kB float64
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscan(rest, &kB); err != nil {
			continue
		}
		switch name {
		case "Private_Clean", "Private_Dirty":
			private += kB / 1024
		case "Rss":
			resident = kB / 1024
		}
	}
	return private, resident, nil
}
