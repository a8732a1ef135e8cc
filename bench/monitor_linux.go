package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

const (
	beatEvery = 2 * time.Minute
	beatPause = 20 * time.Millisecond
	// monitorSettled is how long the monitor has before it is measured: its first look learns everything.
	monitorSettled = 20 * time.Second
	// endsApart is the time between two ends: agents that end together are one incident, and one of them is tried first.
	endsApart = 40 * time.Second
)

// agents are a home with declared agents, and their processes.
type agents struct {
	home      string
	processes []*exec.Cmd
	next      int       // whose beat is due
	begun     time.Time // when the first beat was written
}

// monitored measures what `outlive monitor` costs: how much of a core it takes, how much memory is resident, and how long after
// the end of an agent its start command runs. The processor's time is the kernel's count for the monitor's process, so that what
// else the machine does counts little; the time until an agent is started again is time on the clock, and does not.
func (b *bench) monitored() (outcome, error) {
	count, measured, kills := 2000, time.Minute, 3
	if b.quick {
		count, measured, kills = 200, 5*time.Second, 1
	}
	home, err := b.home()
	if err != nil {
		return outcome{}, err
	}
	c := &agents{home: home}
	defer c.end()
	b.say("%d agents: starting", count)
	if err := c.begin(count); err != nil {
		return outcome{}, err
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "TELEGRAM_") })
	watcher, err := b.launch(command{name: "outlive monitor", argv: []string{b.outlive, "monitor", "--home", home}, env: env})
	if err != nil {
		return outcome{}, err
	}
	defer watcher.end(10 * time.Second)
	if err := c.beat(monitorSettled); err != nil {
		return outcome{}, err
	}
	b.say("%d agents: measuring", count)
	before, _ := proc.StatOf(watcher.pid())
	from := time.Now()
	if err := c.beat(measured); err != nil {
		return outcome{}, err
	}
	took := time.Since(from)
	after, alive := proc.StatOf(watcher.pid())
	if !alive {
		return outcome{}, fmt.Errorf("outlive monitor: %w%s", errEnded, watcher.lastWords())
	}
	resident := proc.MemoryOf(watcher.pid()).Resident
	var again []float64
	for n := range kills {
		b.say("%d agents: end %d of %d", count, n+1, kills)
		if err := c.beat(endsApart); err != nil {
			return outcome{}, err
		}
		late, err := c.kill(n * (count / kills))
		if err != nil {
			return outcome{}, err
		}
		again = append(again, late.Seconds())
	}
	f := monitorFigures{count: count, measured: measured, again: again,
		processor: 100 * (after.CPU - before.CPU).Seconds() / took.Seconds(), resident: resident / mebibyte}
	return f.outcome(), nil
}

// monitorFigures are what a monitor takes.
type monitorFigures struct {
	count     int // agents
	measured  time.Duration
	processor float64   // of one core, %
	resident  float64   // MB
	again     []float64 // s, from the end of an agent until its start command has run
}

func (f monitorFigures) outcome() outcome {
	t := figures.Table{
		Title: "What a monitor takes",
		Note: fmt.Sprintf("%d declared agents, each a real process with a pidfile and a beat every %.0f minutes. Processor: of one core, over %.0f s. Resident: all of it. Started "+
			"again: from the end of an agent until its start command has run; agents end %.0f s apart, since those that end within half a minute of each other are one "+
			"incident, of which one is tried first.", f.count, beatEvery.Minutes(), f.measured.Seconds(), endsApart.Seconds()),
		Rows: [][]string{{"", "processor, %", "resident, MB", "started again, s: median", "longest"}},
	}
	t.Add("outlive monitor", f.processor, f.resident, figures.Median(f.again), figures.Percentile(f.again, 1))
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: fmt.Sprintf("processor, %d agents", f.count), got: f.processor, limit: 4, unit: " % of a core"},
		{name: "resident memory", got: f.resident, limit: 60, unit: " MB"},
		{name: "an agent that ends is started again after", got: figures.Percentile(f.again, 1), limit: 10, unit: " s"}}}
}

func (c *agents) name(n int) string { return fmt.Sprintf("agent%04d", n) }

// begin declares the agents and starts their processes. Whoever is started again leaves a file.
func (c *agents) begin(count int) error {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString("version: 2\nagents:\n")
	for n := range count {
		dir := filepath.Join(c.home, "work", c.name(n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		fmt.Fprintf(&text, "  %s:\n    path: %s\n    kind: command\n    match: {pidfile: pid}\n    expect: {beat: 2m}\n    start: {cmd: [touch, started]}\n", c.name(n), dir)
		cmd := &exec.Cmd{Path: sleep, Args: []string{"agent", "3600"}, Dir: dir}
		if err := cmd.Start(); err != nil {
			return err
		}
		c.processes = append(c.processes, cmd)
		if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			return err
		}
		if err := c.write(n); err != nil {
			return err
		}
	}
	c.begun = time.Now()
	return os.WriteFile(filepath.Join(c.home, "registry.yaml"), []byte(text.String()), 0o600)
}

func (c *agents) write(n int) error {
	return heartbeat.Write(monitor.BeatDir(c.home), heartbeat.Observation{Agent: c.name(n), Wall: time.Now(), State: heartbeat.Working})
}

// beat writes the beats that are due in a time, evenly, as agents that began at different times do.
func (c *agents) beat(d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(beatPause) {
		for due := int(time.Since(c.begun) * time.Duration(len(c.processes)) / beatEvery); c.next < due; c.next++ {
			if err := c.write(c.next % len(c.processes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// kill ends an agent, and waits until it is started again.
func (c *agents) kill(n int) (time.Duration, error) {
	cmd, begin := c.processes[n], time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for time.Since(begin) < patience {
		if _, err := os.Stat(filepath.Join(cmd.Dir, "started")); err == nil {
			return time.Since(begin), nil
		}
		if err := c.beat(beatPause); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("agent %d was not started again within %s", n, patience)
}

func (c *agents) end() {
	for _, cmd := range c.processes {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}
