package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// manyAgents makes 200 agents at rest: real processes that sleep under the names of the CLIs, and files as the CLIs leave them.
func manyAgents(b *testing.B) Options {
	b.Helper()
	home := b.TempDir()
	w := &world{home: home}
	o := Options{Home: filepath.Join(home, "agents"), Places: agentcli.Places{agentcli.Claude: filepath.Join(home, "claude"), agentcli.Codex: filepath.Join(home, "codex"), agentcli.Gemini: filepath.Join(home, "gemini")}}
	text := "version: 2\nagents:\n"
	kinds := []string{"claude", "claude", "codex", "gemini", "command"}
	for n := range 200 {
		kind := kinds[n%len(kinds)]
		name := fmt.Sprintf("agent%03d", n)
		text += fmt.Sprintf("  %s:\n    path: %s\n    kind: %s\n    match: {pidfile: pid}\n    start: {cmd: [x], resume: [x, \"{session}\"]}\n", name, w.dir(name), kind)
		id := sleeper(b, kind, w.dir(name))
		place(b, filepath.Join(w.dir(name), "pid"), strconv.Itoa(id.PID))
		switch kind {
		case "claude":
			place(b, filepath.Join(o.Places[agentcli.Claude], "sessions", strconv.Itoa(id.PID)+".json"), fmt.Sprintf(
				`{"pid":%d,"sessionId":"s%d","cwd":%q,"procStart":"%d","version":"2.1.330","status":"idle","statusUpdatedAt":%d}`,
				id.PID, n, w.dir(name), id.Start, time.Now().UnixMilli()))
			place(b, filepath.Join(o.Places[agentcli.Claude], "projects", noWord.ReplaceAllString(w.dir(name), "-"), fmt.Sprintf("s%d.jsonl", n)), recorded(b, "claude/answer", w.dir(name)))
		case "codex":
			place(b, filepath.Join(o.Places[agentcli.Codex], time.Now().Format("sessions/2006/01/02"), fmt.Sprintf("rollout-2026-11-21T10-00-00-%08d-0000-7000-8000-000000000000.jsonl", n)), recorded(b, "codex/exec-answer", w.dir(name)))
		case "command":
			err := heartbeat.Write(BeatDir(o.Home), heartbeat.Observation{Agent: name, Wall: time.Now(), State: heartbeat.Idle})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	place(b, filepath.Join(o.Home, "registry.yaml"), text)
	return o
}

func place(b *testing.B, path, text string) {
	b.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		b.Fatal(err)
	}
}

// recorded is a session of a real CLI, as if it were in another directory.
func recorded(b *testing.B, name, dir string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("../agentcli/testdata", name, "transcript.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "/home/u/shop", dir)
}

// sleeper is a process that does nothing, and is called like a CLI.
func sleeper(b *testing.B, name, dir string) process.Identity {
	b.Helper()
	path, err := exec.LookPath("sleep")
	if err = errors.Join(err, os.MkdirAll(dir, 0o700)); err != nil {
		b.Fatal(err)
	}
	cmd := &exec.Cmd{Path: path, Args: []string{name, "600"}, Dir: dir, Env: []string{}}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return identityOf(cmd.Process.Pid)
}

// One look at 200 agents at rest; the loop makes one each five seconds. Besides its time, the share of a core that this
// comes to, and the memory of the whole process.
func BenchmarkALookAtTwoHundredAgents(b *testing.B) {
	m, err := Open(b.Context(), manyAgents(b))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for range 2 {
		if _, err := m.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	view, watched := m.seen.Load(), 0
	for _, a := range view.Agents {
		if m.agentStates[a.Key].Identity.PID != 0 {
			watched++
		}
	}
	if watched != 200 {
		b.Fatalf("%d agents were found", watched)
	}
	before := cpuTime(b)
	for b.Loop() {
		if _, err := m.look(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*float64(cpuTime(b)-before)/float64(b.N)/float64(lookEvery), "%core")
	b.ReportMetric(residentMB(b), "MB-rss")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	for _, e := range (process.System{}).All() {
		if e.PID == os.Getpid() {
			return e.CPU
		}
	}
	b.Fatal("we are not among the processes")
	return 0
}

func residentMB(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	var kB float64
	if _, err := fmt.Sscan(string(rest), &kB); err != nil {
		b.Fatal(err)
	}
	return kB / 1024
}
