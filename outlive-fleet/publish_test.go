package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/seen"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// publishing runs a publisher in memory for as long as the test does.
func publishing(t *testing.T, test func(t *testing.T, m *member, e *inMemory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, e := memberIn(enginemem.New(), "a", "")
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); m.publisher.run(ctx) }()
		test(t, m, e)
		cancel()
		<-over
	})
}

// stateOf1 is how a machine stands whose one server is in a state, with so many calls.
func stateOf1(state string, calls int) []byte {
	s := overview.Snapshot{Version: "v1", At: time.Now().UTC(), Instances: []overview.Instance{{Instance: control.Instance{Name: "one", PID: 7}}}}
	s.Instances[0].Status.State, s.Instances[0].Status.InFlight = state, calls
	line, _ := collect.StateLine(s, false) // texts, numbers and times
	return line
}

const crashed = `{"instance":"one@1","timestamp":"2026-05-04T12:00:00Z","level":"ERROR","message":"Server crashed","event_type":"server_crashed"}`

func wantTimes(t *testing.T, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: written after %v, want %v", what, got, want)
	}
}

// What happens here is taken also while the hub takes nothing: outlive watch, whose lines they are, does not wait for it.
func TestLinesAreTakenWhileTheHubTakesNothing(t *testing.T) {
	p := newPublisher(nil)
	p.line(stateOf1("ready", 0))
	p.busy.Lock() // something is being written
	defer p.busy.Unlock()
	taken := make(chan struct{})
	go func() { defer close(taken); p.line(stateOf1("failed", 0)) }()
	select {
	case <-taken:
	case <-time.After(time.Minute):
		t.Fatal("it waits until that is written")
	}
	if p.mu.Lock(); p.snapshot.Instances[0].Status.State != "failed" {
		t.Error("the state is lost")
	}
	p.mu.Unlock()
}

// A member that is started anew goes on with the numbers of the one before.
func TestNewsGoOn(t *testing.T) {
	fleet := enginemem.New()
	for _, began := range []uint64{1, 3} {
		m, _ := memberIn(fleet, "a", "")
		m.publisher.line(stateOf1("ready", 0))
		for range 2 {
			m.publisher.line([]byte(crashed))
			m.publisher.write(t.Context())
			e, err := fleet.Get(t.Context(), engine.Key(newsTable, "a"))
			if err != nil {
				t.Fatal(err)
			}
			var told seen.Log
			if json.Unmarshal(e.Value, &told) != nil || told.Began != began || told.First != began {
				t.Errorf("%s: began with %d, want %d", e.Value, told.Began, began)
			}
		}
	}
}

// A member has told what has happened since the one before it, or its own outlive watch, has told of something.
func TestEventsWithoutAMember(t *testing.T) {
	fleet := enginemem.New()
	const since = " --since 2001-05-04T12:00:00.001Z" // the event is of the millisecond before
	for n, want := range []string{"", since} {
		m, _ := memberIn(fleet, "a", "")
		watches := func(when, want string) {
			t.Helper()
			if got := strings.Join(m.publisher.watchArgs(), " "); got != "watch --json --state"+want {
				t.Errorf("member %d, %s: outlive %s", n+1, when, got)
			}
		}
		if err := m.publisher.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		watches("at first", want)
		m.publisher.line(stateOf1("ready", 0))
		m.publisher.line([]byte(strings.Replace(crashed, "2026-", "2001-", 1)))
		watches("anew", since)
		m.publisher.write(t.Context())
	}
	m, _ := memberIn(fleet, "a", "")
	m.publisher.line([]byte(strings.Replace(crashed, "2026-", "9026-", 1)))
	if got := m.publisher.watchArgs(); len(got) != 3 {
		t.Errorf("after an event of a clock that was wrong: outlive %q", got)
	}
}

// A machine writes nothing until it knows how it stands; then a digest each beat, and its state once a minute where nothing changes.
func TestPace(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		begin := time.Now()
		time.Sleep(3*beatEvery + time.Second)
		for _, table := range tables {
			wantTimes(t, table+", before the first state", e.tried(table, begin))
		}
		m.publisher.line(stateOf1("ready", 0))
		synctest.Wait()
		first := 3*beatEvery + time.Second
		wantTimes(t, "the first state", e.tried(stateTable, begin), first)
		wantTimes(t, "its digest", e.tried(digestTable, begin), first)

		since := time.Now()
		m.publisher.line(stateOf1("ready", 3)) // a count is no change
		time.Sleep(stateEvery + beatEvery)
		beats := e.tried(digestTable, since)
		if n := int((stateEvery+beatEvery)/beatEvery) + 1; len(beats) != n { // the first is that of the first state
			t.Errorf("%d digests within %s, want %d: %v", len(beats), stateEvery+beatEvery, n, beats)
		}
		if states := e.tried(stateTable, since.Add(time.Second)); len(states) != 1 || states[0] < stateEvery-beatEvery {
			t.Errorf("a state that does not change is written after %v, want once, after %s", states, stateEvery)
		}
	})
}

// What has changed, and what has happened, is written at once; what could not be written after half a second, in its newest form.
func TestChangesAreWrittenAtOnce(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		m.publisher.line(stateOf1("ready", 0))
		time.Sleep(beatEvery + time.Second)
		since := time.Now()
		m.publisher.line(stateOf1("backoff", 0))
		wantTimes(t, "a change", e.tried(stateTable, since), 0)
		wantTimes(t, "with its digest", e.tried(digestTable, since), 0)
		m.publisher.line([]byte(crashed))
		wantTimes(t, "an event", e.tried(newsTable, since), 0)
		wantTimes(t, "without another digest", e.tried(digestTable, since), 0)

		time.Sleep(time.Second)
		since = time.Now()
		e.set(false, stateTable, newsTable)
		m.publisher.line(stateOf1("failed", 0))
		m.publisher.line([]byte(crashed))
		time.Sleep(beatAgain + beatAgain/2)
		e.set(false)
		time.Sleep(beatAgain)
		for _, table := range []string{stateTable, newsTable} {
			wantTimes(t, table+", refused and tried again", slices.Compact(e.tried(table, since)), 0, beatAgain, 2*beatAgain)
		}
		wantTimes(t, "the digest, which was taken", slices.Compact(e.tried(digestTable, since)), 0, beatAgain, 2*beatAgain) // it goes with a state

		e.set(false, stateTable)
		m.publisher.line(stateOf1("backoff", 0))
		synctest.Wait()
		m.publisher.line(stateOf1("ready", 9)) // the newest form
		e.set(false)
		time.Sleep(beatAgain)
		if s := stored(t, e); s.Instances[0].Status.State != "ready" || s.Instances[0].Status.InFlight != 9 {
			t.Errorf("written in the end: %+v", s.Instances[0].Status)
		}
		if n := storedNews(t, e); len(n.Lines) != 2 {
			t.Errorf("%d events are written in the end, want 2", len(n.Lines))
		}
	})
}

// Without a connection nothing is tried. When it is there again, everything is written: the hub may have forgotten it.
func TestConnectionReturns(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		m.publisher.line(stateOf1("ready", 0))
		m.publisher.line([]byte(crashed))
		time.Sleep(time.Second)
		e.set(true)
		since := time.Now()
		m.publisher.line([]byte(crashed))
		time.Sleep(2*beatEvery + time.Second)
		for _, table := range tables {
			wantTimes(t, table+", without a connection", e.tried(table, since))
		}
		e.set(false)
		since = time.Now()
		m.publisher.again()
		synctest.Wait()
		for _, table := range tables {
			wantTimes(t, table+", with one", e.tried(table, since), 0)
		}
		if n := storedNews(t, e); len(n.Lines) != 2 {
			t.Errorf("%d events are told, want 2", len(n.Lines))
		}
	})
}

// A machine that leaves writes nothing more, whatever happens.
func TestStoppedPublisher(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		m.publisher.line(stateOf1("ready", 0))
		time.Sleep(time.Second)
		m.publisher.stop()
		since := time.Now()
		m.publisher.line(stateOf1("backoff", 0))
		m.publisher.line([]byte(crashed))
		m.publisher.again()
		time.Sleep(2 * stateEvery)
		for _, table := range tables {
			wantTimes(t, table+", after the end", e.tried(table, since))
		}
	})
}

// Of many events the last ones are kept, with their numbers.
func TestNewsKept(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		m.publisher.line(stateOf1("ready", 0))
		for n := range 2 * newsKept {
			m.publisher.line(fmt.Appendf(nil, `{"instance":"one@1","timestamp":"2026-05-04T12:00:00Z","level":"INFO","message":"%d","event_type":"server_ready"}`, n+1))
		}
		synctest.Wait()
		n := storedNews(t, e)
		if len(n.Lines) != newsKept || n.First != newsKept+1 {
			t.Errorf("%d events from number %d on, want %d from %d on", len(n.Lines), n.First, newsKept, newsKept+1)
		}
		var last struct{ Message string }
		if err := json.Unmarshal(n.Lines[len(n.Lines)-1], &last); err != nil || last.Message != fmt.Sprint(2*newsKept) {
			t.Errorf("the last one is %+v, %v", last, err)
		}
	})
}

func entryOf(t *testing.T, e *inMemory, table string) []byte {
	t.Helper()
	synctest.Wait() // what is due at this moment is done
	entry, err := e.Get(t.Context(), engine.Key(table, "a"))
	if err != nil {
		t.Fatal(err)
	}
	return entry.Value
}

func stored(t *testing.T, e *inMemory) overview.Snapshot {
	t.Helper()
	s, err := unpacked(entryOf(t, e, stateTable))
	if err != nil {
		t.Fatal(err)
	}
	return s.Snapshot
}

func storedNews(t *testing.T, e *inMemory) (n seen.Log) {
	t.Helper()
	if err := json.Unmarshal(entryOf(t, e, newsTable), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A machine says whether its monitor can tell people.
func TestDigestTells(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		for channels, want := range []bool{false, true} {
			line, _ := json.Marshal(overview.Snapshot{Version: "v1", Home: &overview.Home{Monitor: 7 + channels, Channels: channels}}) // texts and numbers
			m.publisher.line(fmt.Appendf(nil, `{"state":%s}`, line))
			synctest.Wait()
			entry, err := e.Get(t.Context(), engine.Key(digestTable, "a"))
			var d judge.Digest
			if err != nil || json.Unmarshal(entry.Value, &d) != nil || (d.Reach == judge.People) != want {
				t.Errorf("with %d channels: %s, %v", channels, entry.Value, err)
			}
		}
	})
}

// A machine that ends as it should says so in its last digest, and that it has no troubles any more. Whom its monitor told stays known.
func TestLastDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, e := memberIn(enginemem.New(), "a", "")
		m.judging.shares, m.judging.told = []judge.Trouble{{Cause: "account:claude:credit", Agent: "shop"}}, time.Now()
		m.publisher.snapshot.Home, m.publisher.sign, m.publisher.have = &overview.Home{Monitor: 7, Channels: 1}, "1", true
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); m.publisher.run(ctx) }()
		says := func() (d judge.Digest) {
			if err := json.Unmarshal(entryOf(t, e, digestTable), &d); err != nil {
				t.Fatal(err)
			}
			return d
		}
		time.Sleep(beatEvery)
		before := says()
		cancel()
		<-over
		last := says()
		if before.Left || before.Reach != judge.People || len(before.Troubles) != 1 {
			t.Errorf("it says %+v", before)
		}
		if !last.Left || last.Reach != judge.People || len(last.Troubles) != 0 || last.Beat <= before.Beat {
			t.Errorf("at last it says %+v, after %+v", last, before)
		}
	})
}

// While nothing that this machine writes is taken nobody is known, and who looks is told since when.
func TestNothingIsWritten(t *testing.T) {
	publishing(t, func(t *testing.T, m *member, e *inMemory) {
		defer m.view.close()
		stands := func(want string) {
			t.Helper()
			s := m.view.status(t.Context())
			if len(s.Hosts) != 1 || s.Hosts[0].State != want || !s.Connected || (s.Why == "") != (want == fleetsocket.Connected) {
				t.Errorf("want %q: %+v", want, s)
			}
		}
		m.publisher.line(stateOf1("ready", 0))
		synctest.Wait()
		stands(fleetsocket.Connected)
		last := time.Now()
		e.set(false, tables...)
		time.Sleep(unwrittenAfter - time.Second)
		stands(fleetsocket.Connected) // servers may be electing a leader
		time.Sleep(time.Second)
		stands(fleetsocket.Unknown)
		if s := m.view.status(t.Context()); !s.Since.Equal(last) {
			t.Errorf("nothing is written since %s, and it is said: %s", last, s.Since)
		}
		e.set(false)
		time.Sleep(beatAgain)
		synctest.Wait()
		stands(fleetsocket.Connected)
	})
}
