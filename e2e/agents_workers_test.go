package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// worker is an agent that does one job after the other, in a directory of its own.
type worker struct {
	m          *watcher
	name, kind string
	project    string
	jobs       []job
}

// job is a run of a headless CLI behind our wrapper, with a model of its own.
type job struct {
	name      string
	argv, env []string
}

// newWorkers makes so many agents of each CLI in one home. The monitor that watches them is still to be started.
func newWorkers(t *testing.T, each int, expect declaration) (*watcher, []*worker) {
	t.Helper()
	m := newWatcher(t)
	a := newAgent(t, "claude", mockmodel.Answer, agentSetup{headless: true}) // it never starts: it is asked what a resumed one asks
	m.watches(a, "--answers", "off")
	var workers []*worker
	entries := map[string]declaration{}
	for i := range each {
		for _, kind := range kinds {
			name := fmt.Sprint(kind, i)
			k := &worker{m: m, name: name, kind: kind, project: a.w.path(name)}
			a.write(filepath.Join(k.project, "check.sh"), checkScript)
			start := declaration{"cmd": []string{"false"}, "resume": resume(kind)}
			entries[name] = declaration{"kind": kind, "path": k.project, "start": start, "expect": expect}
			workers = append(workers, k)
		}
	}
	m.register(entries)
	return m, workers
}

// can gives the agent one more job, before any agent of this home works.
func (k *worker) can(name string, mode mockmodel.Mode, script mockmodel.Script, args ...string) {
	k.m.t.Helper()
	argv, env := k.m.a.beside(k.kind, agentCLIs[k.kind].model(k.m.t, mode, script))
	foreignIn(k.m.t, argv...)
	argv = slices.Concat([]string{timed(), "agent", "run", "--home", k.m.dir, k.name, "--"}, argv, args, []string{k.prompt()})
	k.jobs = append(k.jobs, job{name: name, argv: argv, env: env})
}

// prompt is what the agent is told to do, by which its processes are known.
func (k *worker) prompt() string { return agentPrompt + ", " + k.name }

// runs does a job and returns how it has ended, with the end of what it said.
func (k *worker) runs(j job) error {
	out, err := os.Create(k.m.a.w.path(k.name + ".log"))
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(k.m.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.argv[0], j.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.project, out, out
	cmd.Env = append(slices.Clone(k.m.a.cmd.Env), j.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s, %s: %w\n%s", k.name, j.name, err, ends(said, 1500))
	}
	return nil
}

// pauses between two jobs, as long as is drawn: each end meets another moment between two looks of the monitor.
func (k *worker) pauses(chance *rand.Rand) {
	time.Sleep(time.Duration(chance.Int64N(int64(waits(6 * time.Second)))))
}

// allAre waits until the last verdict of each agent is this one.
func (m *watcher) allAre(class string, workers []*worker) {
	m.t.Helper()
	m.await("the verdict "+class+" of each agent", func() bool {
		last := map[string]string{}
		all, _ := m.judgements(0)
		for _, j := range all {
			last[j.Agent] = j.Verdict.Class
		}
		return !slices.ContainsFunc(workers, func(k *worker) bool { return last[k.name] != class })
	})
}

// TestEndsAreNoCrashes: runs of six agents at once end with their turn and exit status 0. None is called crashed, none is started again,
// and nobody is told. While a process with threads ends, it looks dead before its parent can learn how it has ended.
func TestEndsAreNoCrashes(t *testing.T) {
	needFull(t, "ends of real CLIs by the dozen, of which each meets another moment of the monitor")
	t.Parallel()
	wanted := 24
	if tierOf() == "hunt" {
		wanted = 500
	}
	m, workers := newWorkers(t, 3, declaration{"attended": "1s"})
	for _, k := range workers {
		k.can("an answer", mockmodel.Answer, mockmodel.Script{})
	}
	m.start()
	each := (wanted + len(workers) - 1) / len(workers)
	var all sync.WaitGroup
	for _, k := range workers {
		chance := seeded(t, k.name)
		all.Go(func() {
			for range each {
				if err := k.runs(k.jobs[0]); err != nil {
					t.Error(err)
				}
				k.pauses(chance)
			}
		})
	}
	all.Wait()
	m.allAre("done", workers)
	m.leavesAlone()
	t.Logf("%d ends, %d cycles of the monitor", each*len(workers), m.cycles())
}
