package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// BenchmarkHosts has fleets of 10, 100 and 1,000 machines with 100 agents each for a minute, in which each writes its whole state once: what
// the hub takes, and a member on another machine that is asked every second how all of them stand. The machines are connections of
// this process that write as a member does; hub and member are processes of their own. Then one machine falls silent. Linux only.
//
//	go test -run '^$' -bench Hosts -benchtime 1x -timeout 20m .
func BenchmarkHosts(b *testing.B) {
	dir := b.TempDir()
	for what, from := range map[string]string{"outlive-fleet": ".", "outlive": "../cmd/outlive"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, what), ".")
		build.Dir = from
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	for _, n := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				measureFleet(b, dir, n)
			}
		})
	}
}

const measured = time.Minute

func measureFleet(b *testing.B, programs string, n int) {
	ctx, cancel := context.WithCancel(b.Context())
	var machines sync.WaitGroup
	defer machines.Wait()
	defer cancel()
	state := b.TempDir()
	hubSettings := &settings{state: filepath.Join(state, "hub")}
	id, _, err := hubSettings.identity()
	if err != nil {
		b.Fatal(err)
	}
	tokens := make([]token, n+1) // the last one is the member's
	if err := hubSettings.changeTokens(func(f *tokenFile) error {
		for i := range tokens {
			tokens[i] = token{Host: fmt.Sprintf("m%d", i), Secret: rand.Text(), Pin: id.pin()}
			f.Tokens = append(f.Tokens, known{Host: tokens[i].Host, Hash: hashOf(tokens[i].Secret), Made: time.Now()})
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	hub, address := startFleetProcess(b, programs, hubSettings.state, `listens on (\S+)\.`, "hub", "--listen", "127.0.0.1:0")
	own := filepath.Join(state, "member")
	member, _ := startFleetProcess(b, programs, own, `This machine is (\S+)`, "join", address, "--token", tokens[n].String())
	socket := fleetsocket.Client{Path: control.PathIn(own, "member.sock")}

	snapshot := machine()
	stops := make([]func(), n)
	for i := range n {
		m := &simulated{token: tokens[i], address: address, snapshot: snapshot, begins: beatEvery * time.Duration(i) / time.Duration(n)}
		machineContext, stop := context.WithCancel(ctx)
		stops[i] = stop
		machines.Go(func() { m.live(machineContext, b) })
	}
	asked := time.Now()
	sees := func(what string, limit time.Duration, ok func([]fleetsocket.Host) bool) time.Duration {
		begin := time.Now()
		for time.Since(begin) < limit {
			asked = time.Now()
			if s, err := socket.Status(ctx); err == nil && ok(s.Hosts) {
				return time.Since(begin)
			}
			time.Sleep(time.Until(asked.Add(100 * time.Millisecond)))
		}
		b.Fatalf("%s: not within %v", what, limit)
		return 0
	}
	all := sees("all machines are seen", 5*time.Minute, func(list []fleetsocket.Host) bool {
		seen := 0
		for _, h := range list {
			if h.State == fleetsocket.Connected && h.Agents == agentsEach {
				seen++
			}
		}
		return seen == n
	})
	hubBefore, memberBefore := cpuOf(b, hub), cpuOf(b, member)
	for end := time.Now().Add(measured); time.Now().Before(end); time.Sleep(time.Second) { // somebody looks
		if _, err := socket.Status(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*(cpuOf(b, hub)-hubBefore)/measured.Seconds(), "%hub")
	b.ReportMetric(100*(cpuOf(b, member)-memberBefore)/measured.Seconds(), "%member")
	b.ReportMetric(residentOf(b, hub), "MB/hub")
	b.ReportMetric(residentOf(b, member), "MB/member")
	b.ReportMetric(all.Seconds(), "s/all-joined")
	stops[0]()
	silent := sees("the silent machine is seen", time.Minute, func(list []fleetsocket.Host) bool {
		for _, h := range list {
			if h.Name == tokens[0].Host {
				return h.State != fleetsocket.Connected
			}
		}
		return false
	})
	b.ReportMetric(silent.Seconds(), "s/silence-seen")
	b.ReportMetric(0, "ns/op") // it is what we wait
}

const agentsEach = 100

// machine is what a machine with 100 agents and 5 servers has to say.
func machine() overview.Snapshot {
	s := overview.Snapshot{Version: "1", At: time.Now(), Home: &overview.Home{}}
	for i := range agentsEach {
		s.Home.Agents = append(s.Home.Agents, overview.Agent{
			Key: fmt.Sprintf("agent%d", i), Name: fmt.Sprintf("agent%d", i), Kind: "claude", State: "works", Class: "working", Health: overview.Good,
			Why: "its claude session works (1220 tokens, 0.00 USD)", Since: time.Now().Add(-time.Duration(i) * time.Minute),
		})
	}
	for i := range 5 {
		one := overview.Instance{}
		one.Status.Name = fmt.Sprintf("server%d", i)
		one.Status.State = "ready"
		s.Instances = append(s.Instances, one)
	}
	return s
}

// simulated is a machine: the connection and the writer of a member, without a machine.
type simulated struct {
	token    token
	address  string
	snapshot overview.Snapshot
	begins   time.Duration // after how long: machines are not started at the same time
}

func (m *simulated) live(ctx context.Context, b *testing.B) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(m.begins):
	}
	one := &member{settings: &settings{release: "1"}, membership: membership{Host: m.token.Host, Machine: m.token.Host, Address: m.address, Token: m.token.String()}}
	one.publisher, one.judging = newPublisher(one), &judging{m: one, herald: newHerald(one)}
	one.publisher.snapshot, one.publisher.sign, one.publisher.have = m.snapshot, "1", true
	o, err := one.options()
	if err != nil {
		b.Error(err)
		return
	}
	o.Changed, o.Refused = func(string, error) {}, func(err error) { b.Error(err) }
	for try := 0; ; try++ {
		e, err := natsengine.Connect(o, false)
		if err == nil {
			defer e.Close()
			one.engine = e
			break
		}
		if try == 20 || ctx.Err() != nil {
			b.Errorf("%s: %v", m.token.Host, err)
			return
		}
	}
	// The judging of a member: waiting for the lease or, for one of them, watching all others.
	judging := judge.Options{Reach: func() judge.Reach { return judge.Nobody }}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { _ = judge.Run(ctx, one.engine, m.token.Host, nobody{}, judging) }) // it ends with ctx
	one.publisher.run(ctx)
}

// nobody tells nobody.
type nobody struct{}

func (nobody) Tell(context.Context, judge.Case, bool) error { return judge.ErrNotSent }

// startFleetProcess starts outlive-fleet, and returns when it has printed what is looked for.
func startFleetProcess(b *testing.B, programs, state, want string, args ...string) (pid int, found string) {
	b.Helper()
	log, err := os.Create(filepath.Join(b.TempDir(), "stderr"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	own := []string{"--state", state, "--socket", control.PathIn(state, "member.sock"), "--program", filepath.Join(programs, "outlive"), "--release", "1"}
	cmd := exec.Command(filepath.Join(programs, "outlive-fleet"), append(own, args...)...)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "OUTLIVE_STATE_HOME="+filepath.Join(state, "outlive"), "HOME="+state)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said := await.Value(b, fmt.Sprintf("%v says %s", args, want), func() (string, bool) {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			b.Fatal(err)
		}
		return string(text), regexp.MustCompile(want).Match(text)
	})
	return cmd.Process.Pid, regexp.MustCompile(want).FindStringSubmatch(said)[1]
}

// cpuOf is the processor time of a process in seconds.
func cpuOf(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // USER_HZ
}

// residentOf is the resident memory of a process in MB.
func residentOf(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if err != nil || m == nil {
		b.Fatal(err)
	}
	kb, _ := strconv.ParseFloat(string(m[1]), 64)
	return kb / 1024
}
