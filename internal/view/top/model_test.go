package top

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

// scripted is a source, and what keys do.
type scripted struct {
	state overview.State
	did   []string
	err   error
	slow  chan struct{} // nil: texts are read at once
}

func (s *scripted) State() overview.State             { return s.state }
func (s *scripted) Listen() (<-chan struct{}, func()) { return make(chan struct{}), func() {} }
func (s *scripted) Restart(_ context.Context, one overview.Server) (string, error) {
	s.did = append(s.did, "restart "+one.Key)
	return one.Name + " was restarted", s.err
}
func (s *scripted) RestartAgent(_ context.Context, a overview.Agent) (string, error) {
	s.did = append(s.did, "restart agent "+a.Key)
	return "done", s.err
}
func (s *scripted) Press(_ context.Context, id string, b overview.Button) (string, error) {
	s.did = append(s.did, strings.TrimSpace(b.Verb+" "+id+" "+b.Target))
	return "acknowledged", s.err
}

func (s *scripted) options() Options {
	return Options{
		Source: s, Control: s,
		ServerText: func(one overview.Server) (string, error) {
			if s.slow != nil {
				<-s.slow
			}
			return "first line of " + one.Name + "\n\x1b[31mred\n", nil
		},
		AgentText: func(a overview.Agent) (string, error) { return "", errors.New("no permission") },
		Attach:    func(a overview.Agent) *exec.Cmd { return exec.Command("attach", a.Key) },
	}
}

// scene is as of now.
func scene() overview.State {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	ack, allow := overview.Button{Verb: "ack", Label: "Acknowledge"}, overview.Button{Verb: "allow", Label: "Allow: rm -r build", Target: "req-7"}
	return overview.State{
		At: now, Wrong: 3, Waiting: 1, Monitor: 9,
		Incidents: []overview.Incident{
			{ID: "i1", Title: "shop waits for permission", Details: "it wants to run rm -r build", Opened: ago(2 * time.Minute), State: "notified", Agent: "shop", ToDo: "allow or deny it", Buttons: []overview.Button{allow, ack}},
			{ID: "i2", Title: "blog hangs", Opened: ago(3 * time.Hour), Resolved: ago(2 * time.Hour), Ending: "it works again"},
		},
		Servers: []overview.Server{
			{Key: "broken@2", Name: "broken", State: "backoff", Health: overview.Warn, Since: ago(time.Minute), Why: "exit status 3\nGITHUB_TOKEN is not set", Next: now.Add(5 * time.Second), Restarts: 4},
			{Key: "gate@4", Name: "gate", Gateway: true, State: "running", Health: overview.Good, Since: ago(time.Hour)},
			{Key: "gate@4/files", Of: "gate@4", Name: "files", State: "ready", Health: overview.Good, Since: ago(time.Hour)},
			{Key: "mute@3", Name: "mute", State: "no answer", Health: overview.Bad, Since: ago(time.Minute), Why: "outlive runs, and does not answer"},
			{Key: "works@1", Name: "works", State: "ready", Health: overview.Good, Since: ago(time.Hour), Restarts: 1, Clients: []string{"claude-code 2.1"},
				Renewals: []overview.Renewal{{At: ago(time.Hour), Cause: "crash", Done: true, Took: 80 * time.Millisecond}}},
		},
		Agents: []overview.Agent{{Key: "shop", Name: "shop", State: "waits", Health: overview.Bad, Since: ago(2 * time.Minute), Why: "a permission is asked for"}},
	}
}

// screen is a model of a terminal's size.
func screen(t *testing.T, s *scripted, width, height int) *model {
	t.Helper()
	m := newModel(t.Context(), s.options(), nil)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	play(m, m.readText())
	return m
}

// play does what a command says, and what follows from that; it does not wait for looks.
func play(m *model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, one := range msg {
			play(m, one)
		}
	case read, done, attached:
		_, next := m.Update(msg)
		play(m, next)
	}
}

var named = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "end": tea.KeyEnd, "home": tea.KeyHome, "backspace": tea.KeyBackspace}

func press(m *model, keys ...string) {
	for _, k := range keys {
		key := tea.Key{Code: named[k]}
		if key.Code == 0 {
			key = tea.Key{Code: []rune(k)[0], Text: k}
		}
		_, cmd := m.Update(tea.KeyPressMsg(key))
		play(m, cmd)
	}
}

func shown(m *model) string { return ansi.Strip(m.View().Content) }

func wants(t *testing.T, m *model, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(shown(m), w) {
			t.Errorf("the screen does not say %q:\n%s", w, shown(m))
		}
	}
}

// A usual terminal shows what is broken, since when, what was done and what waits, without a key.
func TestAScreenOf80x24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := screen(t, &scripted{state: scene()}, 80, 24)
		want := strings.Split(`outlive: 3 wrong, 1 waits for you; 4 servers, 1 agent             as of 00:00:00
▶ 1 Incidents: 2, 1 open
>✖ shop waits for permission  waits for you  31 Dec 23:58  it wants to run rm -…
 ○ blog hangs                 over           31 Dec 21:00
  2 Servers: 4 and 1 gateway, 2 wrong
 ▲ broken   is down    31 Dec 23:59  exit status 3 / GITHUB_TOKEN is not set
 ● gate     running    31 Dec 23:00  gateway
 ●   files  ready      31 Dec 23:00
 ✖ mute     no answer  31 Dec 23:59  outlive runs, and does not answer
 ● works    ready      31 Dec 23:00  restarted once
  3 Agents: 1, 1 wrong
 ✖ shop  waits  31 Dec 23:58  a permission is asked for
─ shop waits for permission: waits for you ─────────────────────────────────────
since 31 Dec 23:58
it wants to run rm -r build
to do: allow or deny it
Enter: 2 ways to answer; a: acknowledge
─ what it writes ───────────────────────────────────────────────────────────────
it cannot be read: no permission




n next wrong  l log  r restart  a acknowledge  t attach  ? help  q quit`, "\n")
		got := strings.Split(shown(m), "\n")
		for n := range got {
			got[n] = strings.TrimRight(got[n], " ")
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("screen (-want +got):\n%s", d)
		}
		if v := m.View(); v.MouseMode != tea.MouseModeNone || !v.AltScreen || v.WindowTitle != "(4!) outlive" {
			t.Errorf("view: %+v", v)
		}
	})
}

// Whatever the size, the screen has as many lines as the terminal, and none is wider.
func TestNoSizeBreaksTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := screen(t, &scripted{state: scene()}, 80, 24)
		m.state.Trouble = []string{"one", "two 漢字 wide characters", "three"}
		phases := map[phase]string{browsing: "", reading: "l", helping: "?", filtering: "/", confirming: "r", answering: "enter"}
		for phase, key := range phases {
			press(m, "1")
			if key != "" {
				press(m, key)
			}
			if m.phase != phase {
				t.Fatalf("after %q it is in phase %d", key, m.phase)
			}
			for _, width := range []int{1, 2, 7, 20, 40, 79, 80, 119, 120, 200, 1000} {
				for height := range 60 {
					m.Update(tea.WindowSizeMsg{Width: width, Height: height})
					lines := m.lines()
					if len(lines) != height {
						t.Errorf("%d×%d in phase %d: %d lines", width, height, phase, len(lines))
					}
					for _, l := range lines {
						if n := ansi.StringWidth(l); n > width {
							t.Errorf("%d×%d in phase %d: %d columns: %q", width, height, phase, n, l)
						}
					}
				}
			}
			press(m, "esc")
		}
		m.Update(tea.WindowSizeMsg{Width: 40, Height: 12})
		wants(t, m, "3 wrong, 1 waits", "✖", "as of")
	})
}

// What is old says so in words, also in the title: nobody takes it for the present.
func TestWhatIsOldSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{state: scene()}
		m := screen(t, s, 80, 24)
		time.Sleep(5 * time.Second)
		m.Update(seen{s.State()})
		if strings.Contains(shown(m), "OLD") {
			t.Errorf("it is old after 5 s:\n%s", shown(m))
		}
		time.Sleep(8 * time.Second)
		m.Update(seen{s.State()})
		wants(t, m, "▲ OLD: as of 00:00:00, 13 s ago")
		if got := m.View().WindowTitle; got != "(?) outlive" {
			t.Errorf("title %q", got)
		}
		s.state = scene()
		m.Update(seen{s.State()})
		wants(t, m, "as of 00:00:13")
		if strings.Contains(shown(m), "OLD") {
			t.Errorf("it is old still:\n%s", shown(m))
		}
	})
}

// A server whose outlive has gone does not vanish unseen.
func TestAServerThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{state: scene()}
		m := screen(t, s, 80, 24)
		last := &s.state.Servers[len(s.state.Servers)-1]
		last.Gone, last.State, last.Health = true, "has ended", overview.Idle
		m.Update(seen{s.State()})
		wants(t, m, "○ works    has ended")
		press(m, "2", "end", "r")
		wants(t, m, "has ended: there is nothing to restart")
		last.Name = "a\x1bc" // a name of another machine may be anything
		m.Update(seen{s.State()})
		press(m, "r")
		wants(t, m, `a\x1bc has ended: there is nothing to restart`)
	})
}

func TestKeysDoWhatTheySay(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		did  []string
		says string
	}{
		{"restart, and yes", []string{"2", "end", "r", "y"}, []string{"restart works@1"}, "works was restarted"},
		{"restart, and no", []string{"2", "end", "r", "n"}, nil, "nothing was done"},
		{"restart, the question", []string{"2", "end", "r"}, nil, "Restart works? Its clients stay connected. y: yes, any other key: no"},
		{"restart of a gateway", []string{"2", "down", "r"}, nil, "select one of its servers; the whole gateway: outlive restart gate"},
		{"restart of a gateway's server", []string{"2", "down", "down", "r", "y"}, []string{"restart gate@4/files"}, "files was restarted"},
		{"restart of an agent", []string{"3", "r", "y"}, []string{"restart agent shop"}, "done"},
		{"acknowledge", []string{"1", "a"}, []string{"ack i1"}, "acknowledged"},
		{"acknowledge the agent's", []string{"3", "a"}, []string{"ack i1"}, "acknowledged"},
		{"acknowledge what is over", []string{"1", "down", "a"}, nil, "no incident of it waits for you"},
		{"answer", []string{"1", "enter", "1"}, []string{"allow i1 req-7"}, "acknowledged"},
		{"answer, the question", []string{"1", "enter"}, nil, "1  Allow: rm -r build"},
		{"answer nothing", []string{"1", "enter", "9"}, nil, "nothing was done"},
		{"attach to a server", []string{"2", "t"}, nil, "only an agent has a terminal"},
		{"filter", []string{"/", "m", "u", "t", "e", "enter"}, nil, "✖ mute"},
		{"filter that lets nothing through", []string{"/", "z", "z"}, nil, "2 Servers: none that the filter lets through"},
		{"filter, taken back", []string{"/", "z", "z", "esc"}, nil, "● works"},
		{"the next wrong one", []string{"1", "n", "n"}, nil, ">✖ mute"},
		{"over the edge of a pane", []string{"1", "down", "down"}, nil, ">▲ broken"},
		{"and back", []string{"2", "up"}, nil, ">○ blog hangs"},
		{"log", []string{"2", "end", "l"}, nil, `\x1b[31mred`},
		{"help", []string{"?"}, nil, "acknowledge the incident: you deal with it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{state: scene()}
				m := screen(t, s, 100, 30)
				press(m, tt.keys...)
				if d := cmp.Diff(tt.did, s.did); d != "" {
					t.Errorf("done (-want +got):\n%s", d)
				}
				wants(t, m, tt.says)
			})
		})
	}
}

// The cursor stays on its thing when others come before it; a failure is said; --read-only does nothing.
func TestCursorFailureAndReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{state: scene(), err: errors.New("it does not come up\nno key")}
		m := screen(t, s, 100, 30)
		press(m, "2", "end")
		s.state.Servers = append([]overview.Server{{Key: "a@8", Name: "a", State: "ready", Health: overview.Good}}, s.state.Servers...)
		m.Update(seen{s.State()})
		wants(t, m, ">● works")
		press(m, "r", "y")
		wants(t, m, "not done: it does not come up no key")
		s.err = errors.New(strings.Repeat("it does not come up, ", 12) + "since_the_disk_is_full")
		press(m, "r", "y")
		wants(t, m, "since_the_disk_is_full") // an answer that is longer than a line is read to its end

		m.opts.Control = nil
		for _, key := range []string{"r", "a"} {
			m.answer = ""
			press(m, "1", key)
			wants(t, m, "only looking")
		}
		if len(s.did) != 2 {
			t.Errorf("done: %q", s.did)
		}
	})
}

// On a wide screen a server has its last minutes beside it.
func TestTheLastMinutesOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		part := curve.Part{First: now.Unix()/60 - 4, Points: []curve.Point{
			{Known: true, Calls: 1}, {}, {Known: true, Calls: 60, P99: 0.5}, {Known: true, Calls: 30, P99: 0.04},
		}}
		one := overview.Server{Key: "s@1", Name: "s", State: "ready", Health: overview.Good, Memory: 34 << 20, Restarts: 3, Curve: (*curve.Curve)(nil).With(part)}
		gone := overview.Server{Key: "t@1", Name: "t", State: "ready", Health: overview.Good, Memory: 1 << 20}
		s := &scripted{state: overview.State{At: now, Servers: []overview.Server{one, gone}}}
		wants(t, screen(t, s, 120, 24), "30/min    40 ms    34 MiB  ↻ 3", " 1.0 MiB")
		wants(t, screen(t, s, 200, 24), "▁ █▄   30/min    40 ms    34 MiB  ↻ 3")
		s.state.At = now.Add(time.Minute) // the minute that has just ended is not known yet
		wants(t, screen(t, s, 120, 24), "30/min    40 ms    34 MiB  ↻ 3")
	})
}

// Many rows scroll; what is wrong and not shown is counted.
func TestManyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{state: overview.State{At: time.Now()}}
		for n := range 40 {
			s.state.Servers = append(s.state.Servers, overview.Server{Key: fmt.Sprintf("s%02d@1", n), Name: fmt.Sprintf("s%02d", n), State: "ready", Health: overview.Good})
		}
		s.state.Servers[39].Health, s.state.Servers[39].State, s.state.Wrong = overview.Bad, "failed", 1
		m := screen(t, s, 80, 24)
		wants(t, m, "40, 1 wrong (1–", "1 wrong not shown: n", "1 Incidents: none in the last 24 hours", "3 Agents: none is declared")
		press(m, "n")
		wants(t, m, ">✖ s39  keeps failing")
	})
}

// A text that cannot be read in time says so, and keeps nothing else from going on.
func TestASlowText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{state: scene(), slow: make(chan struct{})}
		m := newModel(t.Context(), s.options(), nil)
		m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
		_, cmd := m.Update(tea.KeyPressMsg(tea.Key{Code: '2', Text: "2"}))
		var reading sync.WaitGroup
		reading.Go(func() { play(m, cmd) })
		synctest.Wait()
		time.Sleep(3 * time.Second)
		if again := m.readText(); again != nil {
			t.Error("it is read twice")
		}
		s.state = scene()
		m.Update(seen{s.State()})
		wants(t, m, "▲ not read for 3", "as of 00:00:03")
		close(s.slow)
		reading.Wait()
		wants(t, m, "first line of broken")
	})
}
