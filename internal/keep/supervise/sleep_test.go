package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// marked is what a process wishes of itself while the owner can bring up another beside it.
var marked = Restart{Cause: Requested, Source: SourceMarker, Reason: "restart marker", Overlap: true}

// idle sends the serving process to sleep.
func (s *story) idle() *story { return s.tell(Sleep{s.Generation(), "no call for 10m0s"}) }

// sleepRows are the stages of a sleep, and what can come while a process goes to sleep.
var sleepRows = []tableRow{
	{"dozing", []Event{Start{}, Ready{0}, Sleep{0, "idle"}}},
	{"roused", []Event{Start{}, Ready{0}, Sleep{0, "idle"}, Start{}}},
	{"slept", []Event{Start{}, Ready{0}, Sleep{0, "idle"}, Exited{Code: 1}}},
	{"slept+need", []Event{Start{}, Ready{0}, Sleep{0, "idle"}, Exited{Code: 1}, Start{}}},
	{"slept+wish", []Event{Start{}, Ready{0}, Sleep{0, "idle"}, Exited{Code: 1}, byTool}},
	{"asleep", []Event{Replayable{true}, Start{}, Ready{0}, Sleep{0, "idle"}, Exited{}, TreeGone{}}},
}

func TestASleepEndsTheProcessAndTheNextNeedStartsOne(t *testing.T) {
	s := standby(t, Options{}).idle().did(Dismiss{1}).serves(0, Stopping)
	if s.doing != "SPXIT" {
		t.Errorf("did %q", s.doing)
	}
	if snap := s.Snapshot(); snap.Cause != Idle || !snap.Planned || snap.Asleep {
		t.Errorf("on the way: %+v", snap)
	}
	s.pass(2*time.Second - 1)
	if s.pass(1); s.doing != "SPXITK" {
		t.Errorf("after the grace: did %q", s.doing)
	}
	s.exit(137).serves(0, Stopped).expect(Stopped, 0).pass(24 * time.Hour)
	want := Report{From: Sweeping, To: Stopped, Cause: Idle, Reason: "no call for 10m0s"}
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if snap := s.Snapshot(); !snap.Asleep || snap.Over || !s.Deadline().IsZero() || s.doing != "SPXITK" {
		t.Errorf("asleep: %+v, did %q", snap, s.doing)
	}
	s.tell(Start{}).serves(2, Starting).expect(Starting, 0)
	if diff := cmp.Diff(Spawn{Gen: 2, Cause: Idle, Reason: "needed again"}, s.spawns[1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Snapshot().Asleep || s.Snapshot().Cause != NoCause {
		t.Errorf("awake: %+v", s.Snapshot())
	}
	s.up().did(SpawnSpare{Gen: 3}).expect(Serving, 0)
}

func TestNothingIsAsleepBeforeTheFirstStart(t *testing.T) {
	if m := New(Options{}); m.Snapshot().Asleep {
		t.Error("asleep")
	}
	s := begin(t, Options{}).up().exit(0)
	if s.Snapshot().Asleep {
		t.Error("asleep after the end")
	}
}

func TestHoweverAProcessGoesToSleepItSleeps(t *testing.T) {
	for name, end := range map[string][]Event{
		"clean":           {Exited{}},
		"crash":           {Exited{Code: 1}},
		"wrong set-up":    {Exited{Code: 78}},
		"exit 42":         {Exited{Code: 42}},
		"marker":          {marked, Exited{Code: 143, Signalled: true}},
		"probe":           {Exited{Code: 1, Probe: true}},
		"condemned":       {MarkUnhealthy{Cause: Unhealthy}, Exited{Code: 137, Signalled: true}},
		"too old":         {limit, Exited{}},
		"a second Sleep":  {Sleep{0, "still idle"}, Exited{}},
		"stdout closed":   {StdoutClosed{}, Exited{}},
		"its last answer": {Drained{}, Ready{}, Exited{}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := rulesOf78()
			opts.Backoff = preset(t, "exponential").Backoff
			s := begin(t, opts).up().idle().tell(end...).tell(TreeGone{}).expect(Stopped, 0).pass(time.Hour)
			if !s.Snapshot().Asleep || len(s.spawns) != 1 {
				t.Errorf("%+v after %d starts", s.Snapshot(), len(s.spawns))
			}
			s.tell(Start{}).up().pass(time.Second).exit(1)
			if got := s.last().Delay; got != time.Second {
				t.Errorf("the next crash waits %s", got)
			}
		})
	}
}

func TestASleepForgetsNoFailures(t *testing.T) {
	s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up()
	s.idle().exit(0).pass(time.Hour).tell(Start{}).up().exit(1)
	if got := s.last().Delay; got != 4*time.Second {
		t.Errorf("the next crash waits %s", got)
	}
}

func TestWhoComesWhileItGoesToSleepIsServedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		events   []Event
		want     Spawn
		restarts int
	}{
		"a call":              {[]Event{Start{}}, Spawn{Gen: 1, Cause: Idle, Reason: "needed again"}, 0},
		"two calls":           {[]Event{Start{}, Start{}}, Spawn{Gen: 1, Cause: Idle, Reason: "needed again"}, 0},
		"a wish":              {[]Event{byTool}, Spawn{Gen: 1, Cause: Requested, Source: SourceTool, Reason: "new code"}, 1},
		"a wish with overlap": {[]Event{overlap}, Spawn{Gen: 1, Cause: Requested, Source: SourceTool, Reason: "new code"}, 1},
		"a call and a wish":   {[]Event{Start{}, byTool}, Spawn{Gen: 1, Cause: Requested, Source: SourceTool, Reason: "new code"}, 1},
		"a marker, a wish":    {[]Event{marked, byTool}, Spawn{Gen: 1, Cause: Requested, Source: SourceTool, Reason: "new code"}, 1},
		"a new handshake":     {[]Event{Restart{Cause: Replace}}, Spawn{Gen: 1, Cause: Idle, Reason: "needed again"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				s := begin(t, preset(t, "tiered")).up().idle()
				if late {
					s.tell(Exited{}).tell(c.events...).tell(TreeGone{})
				} else {
					s.tell(c.events...).tell(Exited{}, TreeGone{})
				}
				s.serves(1, Starting).expect(Starting, c.restarts)
				if diff := cmp.Diff(c.want, s.spawns[1]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				s.up().idle().exit(0)
				if !s.Snapshot().Asleep {
					t.Error("what woke it once keeps it awake")
				}
			}
		})
	}
}

func TestAWishWakesASleepingServer(t *testing.T) {
	s := begin(t, preset(t, "tiered")).up().idle().exit(0)
	s.tell(marked, limit, Restart{Cause: Replace}, Restart{Cause: ProbeExit}).expect(Stopped, 0)
	s.tell(overlap).serves(1, Starting).expect(Starting, 1)
	if got := s.spawns[1]; got.Cause != Requested || got.Source != SourceTool || got.Reason != "new code" {
		t.Errorf("started %+v", got)
	}
}

func TestTheEndOfASleepingServer(t *testing.T) {
	s := begin(t, Options{}).up().idle().exit(0).tell(Stop{ClientEOF}).expect(Stopped, 0)
	if got := s.last(); s.doing != "SITF" || got.Cause != Shutdown || !s.Snapshot().Over || s.Snapshot().Asleep {
		t.Errorf("did %q, reported %+v", s.doing, got)
	}
	s = begin(t, Options{}).up().idle().tell(Start{}, Stop{Signal}).pass(600 * time.Millisecond)
	if s.exit(137).expect(Stopped, 0); s.doing != "SITKF" {
		t.Errorf("while it goes: did %q", s.doing)
	}
}

func TestAProcessThatNobodyHasAskedMaySleep(t *testing.T) {
	s := begin(t, Options{}).idle().exit(0).expect(Stopped, 0)
	if !s.Snapshot().Asleep || s.doing != "SIT" {
		t.Errorf("did %q, asleep: %v", s.doing, s.Snapshot().Asleep)
	}
}

func TestOnlyAProcessThatServesGoesToSleep(t *testing.T) {
	for name, c := range map[string]struct {
		s   *story
		gen int
	}{
		"starting":             {begin(t, Options{}).tell(Handshake{0}), 0},
		"dying":                {begin(t, Options{}).up().tell(Exited{Code: 1}), 0},
		"a reload":             {begin(t, Options{}).up().tell(overlap), 0},
		"a reload waits":       {begin(t, Options{}).up().tell(marked, SpareReady{1}, marked), 1},
		"it serves no more":    {begin(t, Options{}).up().tell(overlap, SpareReady{1}), 0},
		"it only stands by":    {standby(t, Options{}), 1},
		"it is being replaced": {begin(t, Options{}).up().tell(byTool), 0},
	} {
		t.Run(name, func(t *testing.T) {
			before, doing := c.s.Snapshot(), c.s.doing
			c.s.tell(Sleep{c.gen, "idle"})
			if diff := cmp.Diff(before, c.s.Snapshot()); diff != "" || c.s.doing != doing {
				t.Errorf("did %q (-before +after):\n%s", c.s.doing, diff)
			}
		})
	}
}
