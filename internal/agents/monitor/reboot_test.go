package monitor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// reboot ends everything that runs; the machine is up again since so long.
func (w *world) reboot(boot string, up time.Duration) {
	clear(w.living)
	w.boot, w.mono, w.slept = boot, up, 0
}

// Twenty agents are started again within two minutes of a reboot, each once. Those whose account is logged out, and tell so as
// soon as they are started, hold up nobody else.
func TestAReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var agents []string
	for i := range 20 {
		agents = append(agents, w.agent(fmt.Sprintf("a%02d", i), map[bool]string{true: "kind: claude\n", false: "kind: command\nmatch: {pidfile: pid}\n"}[i < 6]+starts))
	}
	w.declare("", agents...)
	for i := range 20 {
		name := fmt.Sprintf("a%02d", i)
		if i < 6 {
			w.claude(name, 1001+i).prompt()
			continue
		}
		w.process(1001+i, w.dir(name), 0)
		w.write("projects/"+name+"/pid", fmt.Sprint(1001+i))
	}
	w.cycle()
	w.pass(time.Minute)
	w.reboot("b2", 20*time.Second)
	loggedOut := 0
	for w.mono < 2*time.Minute {
		w.spends(5*time.Second, 5*time.Second)
		for ; loggedOut < len(w.started); loggedOut++ {
			name := filepath.Base(w.started[loggedOut].Dir)
			if name >= "a06" {
				continue
			}
			c := w.claude(name, 5001+loggedOut)
			c.writes(`"type":"assistant","isApiErrorMessage":true,"error":"authentication_failed","message":{"role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":"Please run /login · API Error: 401 OAuth token has expired"}]}`)
		}
	}
	var back []string
	for _, l := range w.started {
		back = append(back, filepath.Base(l.Dir))
	}
	slices.Sort(back)
	if once := slices.Compact(slices.Clone(back)); len(once) != len(back) {
		t.Errorf("started twice: %v", back)
	}
	for i := 6; i < 20; i++ {
		if name := fmt.Sprintf("a%02d", i); !slices.Contains(back, name) {
			t.Errorf("%s is not back two minutes after the reboot; started: %v", name, back)
		}
	}
	if !slices.Contains(back, "a00") {
		t.Errorf("nobody of the account that is logged out was tried: %v", back)
	}
	for _, said := range w.said {
		if strings.Contains(said, "this machine") {
			t.Errorf("a reboot is not a failure that many share: %s", said)
		}
	}
}

// How many start at once is the owner's to say.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var agents []string
	for i, key := range []string{"budget: {at_once: {account: 1}}\n", "", "", ""} {
		agents = append(agents, w.agent(fmt.Sprintf("a%d", i), "kind: command\nmatch: {pidfile: pid}\n"+starts+key))
	}
	w.declare("", agents...)
	for i := range agents {
		w.process(1001+i, w.dir(fmt.Sprintf("a%d", i)), 0)
		w.write(fmt.Sprintf("projects/a%d/pid", i), fmt.Sprint(1001+i))
	}
	w.cycle()
	w.reboot("b2", 10*time.Minute)
	for n := range 4 {
		w.pass(10 * time.Second)
		if w.cycle(); len(w.started) != n+1 {
			t.Errorf("after %d s: %d started", 10*n, len(w.started))
		}
	}
}

// After a reboot with nothing else wrong all are back, whatever they share.
func TestARebootOfOneAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var agents, names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("a%02d", i))
		agents = append(agents, w.agent(names[i], "kind: claude\n"+starts))
	}
	w.declare("", agents...)
	for i, name := range names {
		w.claude(name, 1001+i).prompt()
	}
	w.cycle()
	w.pass(time.Minute)
	w.reboot("b2", 20*time.Second)
	for w.mono < 2*time.Minute {
		w.spends(5*time.Second, 5*time.Second)
	}
	var back []string
	for _, l := range w.started {
		back = append(back, filepath.Base(l.Dir))
	}
	slices.Sort(back)
	if !slices.Equal(back, names) || len(w.said) != 0 {
		t.Errorf("started %v; said %q", back, w.said)
	}
}
