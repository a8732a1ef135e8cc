package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a running outlive.
type scripted struct {
	feed  *control.Feed
	state atomic.Value  // string
	asked atomic.Int64  // how often
	stuck chan struct{} // nil: it answers; otherwise when this is closed
}

func (s *scripted) Status() control.Status {
	s.asked.Add(1)
	if s.stuck != nil {
		<-s.stuck
	}
	return control.Status{PID: os.Getpid(), StartedAt: time.Now(), Status: backend.Status{Name: "x", Command: []string{"x"}, State: s.state.Load().(string)}}
}
func (s *scripted) Used() control.Status { return control.Status{} }
func (s *scripted) Restart(context.Context, control.Order) (control.Result, error) {
	return control.Result{}, errors.ErrUnsupported
}
func (s *scripted) Reload() error                                { return errors.ErrUnsupported }
func (s *scripted) Upgrade(context.Context, time.Duration) error { return errors.ErrUnsupported }
func (s *scripted) say(kind event.Type, text string) {
	s.feed.Emit(event.Event{Type: kind, Time: time.Now(), Message: text})
}

func start(t *testing.T, dir string) (*scripted, *control.Server) {
	t.Helper()
	s := &scripted{feed: control.NewFeed()}
	s.state.Store("ready")
	server, err := control.Listen(dir, "x", os.Getpid(), s.feed, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return s, server
}

func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "col")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

// shows looks until the overview is as wanted.
func shows(t *testing.T, c *Collector, what string, ok func(overview.State) bool) {
	t.Helper()
	await.Value(t, what, func() (overview.State, bool) { s := c.State(); return s, ok(s) })
}

func TestChangesAreSeenAtOnce(t *testing.T) {
	dir := socketDir(t)
	s, _ := start(t, dir)
	s.say(event.ServerReady, "before")
	c := New(Options{Dirs: []string{dir}, History: true, Every: time.Minute})
	defer c.Close()
	if got := c.State(); len(got.Servers) != 1 || got.Servers[0].State != "ready" {
		t.Fatalf("at first: %+v", got)
	}
	news, stop := c.Listen()
	defer stop()
	s.state.Store("backoff")
	s.say(event.ServerCrashed, "crashed") // the event, and no clock, makes it look
	<-news
	shows(t, c, "after a crash", func(o overview.State) bool {
		list := c.Events(overview.Filter{}, 9)
		return o.Servers[0].State == "backoff" && len(list) == 2 && list[0].Instance == fmt.Sprintf("x@%d", os.Getpid())
	})
}

func TestARunThatEndsIsGone(t *testing.T) {
	dir := socketDir(t)
	s, server := start(t, dir)
	c := New(Options{Dirs: []string{dir}, Every: 10 * time.Millisecond})
	defer c.Close()
	s.say(event.ProxyStopped, "stopped")
	_ = server.Close()
	shows(t, c, "after its end", func(o overview.State) bool {
		return len(o.Servers) == 1 && o.Servers[0].Gone && o.Servers[0].State == "has ended" && o.Wrong == 0
	})
}

// Of one that has ended before anything of it was heard nothing is known.
func TestARunThatWasNeverHeard(t *testing.T) {
	c := New(Options{Dirs: []string{socketDir(t)}, Every: 10 * time.Millisecond})
	defer c.Close()
	gone := control.Instance{Name: "x", PID: 1, Path: filepath.Join(socketDir(t), "x.1.sock")}
	for _, after := range []string{"0", ""} {
		if farewell := c.followOne(t.Context(), gone, after, func() {}); !farewell {
			t.Errorf("after %q it is said to have been killed", after)
		}
	}
}

// Whoever begins to look while a run says its farewell does not take it for killed.
func TestARunThatEndsWhileLookingBegins(t *testing.T) {
	dir := socketDir(t)
	s, server := start(t, dir)
	s.say(event.ServerExited, "exited")
	s.say(event.ProxyStopped, "stopped")
	c := New(Options{Dirs: []string{dir}, Every: time.Minute})
	defer c.Close()
	heard := make(chan struct{})
	found, err := control.Discover(dir)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	farewell := make(chan bool)
	go func() { farewell <- c.followOne(t.Context(), found[0], "", sync.OnceFunc(func() { close(heard) })) }()
	<-heard
	_ = server.Close()
	if !<-farewell {
		t.Error("it is said to have been killed")
	}
}

// One that does not say that it ends was killed. It stays for a while, and there is an event.
func TestARunThatIsKilled(t *testing.T) {
	dir := socketDir(t)
	_, server := start(t, dir)
	heard := make(chan overview.Event, 16)
	c := New(Options{Dirs: []string{dir}, Every: 10 * time.Millisecond, OnEvent: func(e overview.Event, _ []byte) { heard <- e }})
	defer c.Close()
	label := c.State().Servers[0].Key
	_ = server.Close()
	if e := <-heard; e.Type != event.ProxyLost || e.Instance != label || e.PID != os.Getpid() || e.Level != "ERROR" {
		t.Errorf("heard %+v", e)
	}
	shows(t, c, "after its end", func(o overview.State) bool {
		return len(o.Servers) == 1 && o.Servers[0].State == "has ended" && strings.Contains(o.Servers[0].Why, "killed") && o.Wrong == 1
	})
	start(t, dir)
	shows(t, c, "when it is there again", func(o overview.State) bool {
		return len(o.Servers) == 1 && o.Servers[0].State == "ready" && o.Wrong == 0
	})
}

// A server may vanish because its gateway does not answer, has it no more, or is gone: what is said is what is known.
func TestWhyAServerIsNotThereAnyMore(t *testing.T) {
	c := &Collector{killed: map[string]time.Time{}}
	at := time.Now()
	look := func(servers ...overview.Server) (list []string) {
		s := overview.State{At: at, Servers: servers}
		c.seeGone(&s)
		c.state.Store(&s)
		for _, one := range s.Servers {
			list = append(list, fmt.Sprintf("%s %s %v %s", one.Key, one.State, one.Gone, one.Why))
		}
		return list
	}
	gateway := overview.Server{Key: "gw@1", Gateway: true, State: "serving", Config: "outlive.yaml"}
	mute := overview.Server{Key: "gw@1", State: control.NoAnswer, Health: overview.Bad}
	one := overview.Server{Key: "gw@1/one", Of: "gw@1", State: "ready", Health: overview.Good}
	two := overview.Server{Key: "gw@1/two", Of: "gw@1", State: "ready", Health: overview.Good}
	run := overview.Server{Key: "x@2", State: "ready", Health: overview.Good}
	expect := func(when string, got []string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	look(gateway, one, two, run)
	for range 3 {
		expect("it does not answer", look(mute, run), "gw@1 no answer false ", "gw@1/one not known false its outlive does not answer",
			"gw@1/two not known false its outlive does not answer", "x@2 ready false ")
		at = at.Add(goneFor)
	}
	expect("it answers", look(gateway, one, two, run), "gw@1 serving false ", "gw@1/one ready false ", "gw@1/two ready false ", "x@2 ready false ")
	expect("one was taken out", look(gateway, one, run), "gw@1 serving false ", "gw@1/one ready false ",
		"gw@1/two has ended true it is not in the configuration any more", "x@2 ready false ")
	at = at.Add(2 * goneFor)
	expect("later", look(gateway, one, run), "gw@1 serving false ", "gw@1/one ready false ", "x@2 ready false ")
	expect("the gateway has ended", look(run), "x@2 ready false ", "gw@1 has ended true its outlive is not there any more",
		"gw@1/one has ended true its outlive is not there any more")
	look(gateway, one, run)
	look(mute, run)
	at = at.Add(2 * goneFor)
	look(mute, run)
	expect("it has ended without having answered", look(run), "x@2 ready false ", "gw@1 has ended true its outlive is not there any more",
		"gw@1/one has ended true its outlive is not there any more")
}

// A run is followed as soon as it listens, however long it is until the next look: also the first one, which makes the directory.
func TestARunBetweenTwoLooksIsHeard(t *testing.T) {
	dir := socketDir(t)
	heard := make(chan overview.Event, 16)
	c := New(Options{Dirs: []string{dir}, Every: time.Hour, OnEvent: func(e overview.Event, _ []byte) { heard <- e }})
	defer c.Close()
	for n := range 3 {
		s, server := start(t, dir)
		s.say(event.ServerReady, fmt.Sprint(n))
		select {
		case e := <-heard:
			if e.Message != fmt.Sprint(n) {
				t.Errorf("heard %+v of run %d", e, n)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("nothing was heard of run %d", n)
		}
		_ = server.Close()
		awaitUnfollowed(t, c)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitUnfollowed waits until the collector has noticed that all are gone.
func awaitUnfollowed(t *testing.T, c *Collector) {
	t.Helper()
	await.Value(t, "none is followed", func() (int, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.followed), len(c.followed) == 0
	})
}

func TestEventsOfLaterRunsAndOfTheMonitor(t *testing.T) {
	dir := socketDir(t)
	heard := make(chan overview.Event, 16)
	var class atomic.Value
	class.Store("working")
	c := New(Options{
		Dirs: []string{dir}, Every: 10 * time.Millisecond, HomeEvery: 10 * time.Millisecond,
		Home: func(context.Context) (*overview.Home, error) {
			return &overview.Home{At: time.Now(), Agents: []overview.Agent{{Key: "a", Class: class.Load().(string)}}}, nil
		},
		OnEvent: func(e overview.Event, _ []byte) { heard <- e },
	})
	defer c.Close()
	c.State()
	s, _ := start(t, dir)
	s.say(event.ServerReady, "its start") // also what was before it was found
	c.LookSoon()
	if e := <-heard; e.Message != "its start" {
		t.Errorf("heard: %+v", e)
	}
	class.Store("crashed")
	c.State()
	if e := <-heard; e.Type != event.AgentChanged || e.Agent != "a" {
		t.Errorf("heard of the agent: %+v", e)
	}
}

// The end of an agent is seen when it is told of, and not at the next look by the clock.
func TestNewsOfTheHomeAreLookedAtAtOnce(t *testing.T) {
	var class atomic.Value
	class.Store("working")
	news := make(chan struct{}, 1)
	c := New(Options{
		Every: time.Hour, HomeEvery: time.Hour, HomeNews: news,
		Home: func(context.Context) (*overview.Home, error) {
			return &overview.Home{At: time.Now(), Agents: []overview.Agent{{Key: "a", Class: class.Load().(string)}}}, nil
		},
	})
	defer c.Close()
	class.Store("crashed")
	news <- struct{}{}
	shows(t, c, "after the news", func(o overview.State) bool { return o.Agents[0].Class == "crashed" })
}

// What stands in the audit log and comes from the running outlive, too, is one event.
func TestAuditLogIsReadOnce(t *testing.T) {
	dir := socketDir(t)
	at := time.Now().UTC().Truncate(time.Millisecond)
	line := func(when time.Time, text string) string {
		return fmt.Sprintf(`{"timestamp":%q,"level":"INFO","message":%q,"event_type":"server_ready","proxy_pid":%d}`, when.Format("2006-01-02T15:04:05.000Z"), text, os.Getpid()) + "\n"
	}
	path := filepath.Join(t.TempDir(), "x.jsonl")
	hole := strings.Repeat("\x00", 3*lineLimit) + "\n" // of a machine that has lost its power
	if err := os.WriteFile(path, []byte(line(at.Add(-48*time.Hour), "old")+"half a line\n"+hole+line(at.Add(-time.Hour), "earlier")+line(at, "both")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, dir)
	s.feed.Emit(event.Event{Type: event.ServerReady, Time: at, Message: "both"})
	s.feed.Emit(event.Event{Type: event.ServerReady, Time: at, Message: "live"})
	c := New(Options{Dirs: []string{dir}, History: true, Every: 10 * time.Millisecond, Audit: func() []string { return []string{path, path + ".none"} }})
	defer c.Close()
	shows(t, c, "events", func(overview.State) bool {
		list := c.Events(overview.Filter{}, 9)
		return len(list) == 3 && list[0].Message == "live" && list[1].Message == "both" && list[2].Message == "earlier"
	})
}

// An outlive that is asked needs the processor: only those are asked that have told of something.
func TestWhatIsAtRestIsNotAsked(t *testing.T) {
	dir := socketDir(t)
	moves, _ := start(t, dir)
	rests := &scripted{feed: control.NewFeed()}
	rests.state.Store("ready")
	server, err := control.Listen(dir, "y", os.Getpid(), rests.feed, nil, rests)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := New(Options{Dirs: []string{dir}, Every: time.Hour})
	defer c.Close()
	c.State()
	stands := func(name, state string) func(overview.State) bool { // the worst stands first
		return func(o overview.State) bool {
			return slices.ContainsFunc(o.Servers, func(s overview.Server) bool { return strings.HasPrefix(s.Key, name+"@") && s.State == state })
		}
	}
	change := func(state string) {
		moves.state.Store(state)
		moves.say(event.ServerReady, state)
		shows(t, c, state, stands("x", state))
	}
	begun := rests.asked.Load()
	for n := range 5 {
		change(fmt.Sprint("state ", n))
	}
	if got := rests.asked.Load(); got != begun {
		t.Errorf("the one at rest was asked %d times because of the other", got-begun)
	}
	rests.state.Store("failed")
	c.LookSoon()
	shows(t, c, "everything is looked at", stands("y", "failed"))
}

func TestHowOftenOneAtRestIsAsked(t *testing.T) {
	at := time.Now()
	for still, looks := range []int{1, 2, 3, 4, 5, 5} { // until the next question
		k := known{asked: at, still: still}
		n := 1
		for ; !k.due(at.Add(time.Duration(n)*time.Second+time.Millisecond), time.Second); n++ {
		}
		if n != looks {
			t.Errorf("after %d equal answers it is asked at look %d, want %d", still, n, looks)
		}
	}
	busy := control.Status{Status: backend.Status{State: "ready", UptimeMS: 1, RSS: 1, Counters: backend.Counters{}}}
	later := busy
	later.UptimeMS, later.RSS = 2, 2
	if diff := cmp.Diff(moving(busy), moving(later)); diff != "" {
		t.Errorf("time and memory alone are no work:\n%s", diff)
	}
	if later.InFlight = 1; cmp.Equal(moving(busy), moving(later)) {
		t.Error("a call is work")
	}
}

// What does not answer is a row that says so; everything else is seen as fast as ever.
func TestWhatIsSilentKeepsNothingElseFromBeingSeen(t *testing.T) {
	dir := socketDir(t)
	works, _ := start(t, dir)
	slow := &scripted{feed: control.NewFeed(), stuck: make(chan struct{})}
	slow.state.Store("ready")
	server, err := control.Listen(dir, "y", os.Getpid(), slow.feed, nil, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	home := make(chan struct{})
	c := New(Options{Dirs: []string{dir}, Every: time.Hour, Home: func(context.Context) (*overview.Home, error) {
		<-home
		return &overview.Home{Path: "/h"}, nil
	}})
	defer c.Close()
	s := c.State()
	if len(s.Servers) != 2 || s.Servers[1].State != "ready" || s.Servers[0].State != "no answer" || len(s.Trouble) != 1 {
		t.Fatalf("one is silent, and the home: %+v", s)
	}
	begun := time.Now()
	works.state.Store("backoff")
	c.LookSoon()
	shows(t, c, "a change of the other", func(o overview.State) bool {
		return o.Servers[1].State == "backoff" && o.Servers[0].State == "no answer"
	})
	tier.Within(t, "seeing the change of the other", time.Since(begun), patience)
	close(slow.stuck)
	close(home)
	shows(t, c, "the late answers", func(o overview.State) bool {
		return o.Servers[1].State == "ready" && o.Home == "/h" && o.Trouble == nil
	})
}

// An outlive that answers late now and then is no silent one, and one that is silent is back when it answers in time: what is shown of it
// does not change to and fro.
func TestALateAnswerIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Collector{asked: map[string]*question[said]{}, known: map[string]*known{}}
		over, end := context.WithCancel(t.Context())
		end()
		k := &known{}
		look := func(why string, state string, took time.Duration, silent bool) {
			t.Helper()
			q := &question[said]{done: make(chan struct{}), took: took}
			if q.answer.status.State = state; state != "" {
				close(q.done)
			}
			if !k.take(c, q, over) || k.one.Silent != silent || !silent && k.one.Status.State != "ready" {
				t.Errorf("%s: silent %v, state %q", why, k.one.Silent, k.one.Status.State)
			}
		}
		look("never heard of", "", 0, true)
		look("the first answer", "ready", 10*time.Second, false)
		time.Sleep(2 * time.Second)
		look("no answer in time", "", 0, false)
		look("its loop does not answer in time", control.NoAnswer, 2*time.Second, false)
		time.Sleep(2 * time.Second)
		look("a late answer", "ready", 4*time.Second, false)
		time.Sleep(unheardFor)
		look("its loop does not answer any more", control.NoAnswer, 2*time.Second, true)
		look("an answer that is too late", "ready", 4*time.Second, true)
		look("an answer", "ready", time.Second, false)
		time.Sleep(unheardFor)
		look("no answer any more", "", 0, true)
	})
}
