package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// standby is a process that is up, with one that stands by.
func standby(t *testing.T, opts Options) *story {
	opts.Standby = max(opts.Standby, 1)
	s := begin(t, opts).tell(Replayable{true}).up().tell(SpareReady{1}).did(SpawnSpare{Gen: 1})
	return s.pass(2 * time.Minute).did()
}

func TestSparesAreStartedOneAfterTheOtherOnceTheyCan(t *testing.T) {
	s := begin(t, Options{Standby: 2}).up().pass(time.Hour).did()
	s.tell(Replayable{true}).did(SpawnSpare{Gen: 1}).pass(10 * time.Second).did()
	s.tell(SpareReady{1}).did(SpawnSpare{Gen: 2}).tell(SpareReady{2}).did().pass(time.Hour).did()
	want := []Spare{{Gen: 1, Ready: true}, {Gen: 2, Ready: true}}
	if diff := cmp.Diff(want, s.Snapshot().Spares); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.tell(Replayable{}).did(Dismiss{1}, Dismiss{2}).pass(time.Hour).did().tell(Replayable{true}).did(SpawnSpare{Gen: 3})
	s.expect(Serving, 0)
}

func TestACrashCostsASwitch(t *testing.T) {
	for name, c := range map[string]struct {
		death []Event
		cause Cause
	}{
		"crash":     {[]Event{Exited{Code: 1}, TreeGone{}}, Crash},
		"unhealthy": {[]Event{MarkUnhealthy{Cause: Unhealthy, Reason: "it does not answer"}, Exited{Code: 137, Signalled: true}, TreeGone{}}, Unhealthy},
		"memory":    {[]Event{MarkUnhealthy{Cause: Memory, Reason: "2 GiB"}, Exited{Code: 137, Signalled: true}, TreeGone{}}, Memory},
		"refused":   {[]Event{Handshake{}, Refused{}, Exited{Code: 1}, TreeGone{}}, StartFail},
	} {
		t.Run(name, func(t *testing.T) {
			s := standby(t, preset(t, "exponential")).tell(c.death...)
			s.did(TakeOver{Gen: 1, Old: -1, Ready: true}).serves(1, Serving).expect(Serving, 1)
			if got := s.last(); got.From != Sweeping || got.Cause != c.cause || got.Gen != 1 || got.Delay != 0 || got.Restarts != 1 {
				t.Errorf("reported %+v", got)
			}
			s.pass(time.Second - 1).did().pass(1).did(SpawnSpare{Gen: 2}) // the crash's delay
			if snap := s.Snapshot(); snap.Cause != NoCause || len(s.spawns) != 1 {
				t.Errorf("then %+v after %d starts", snap, len(s.spawns))
			}
		})
	}
}

func TestACrashLoopOfSparesOpensTheBreaker(t *testing.T) {
	s := standby(t, Options{})
	for range 10 {
		s.exit(3)
		if s.State() != Serving && s.State() != Starting {
			t.Fatalf("%s after %d restarts", s.State(), s.Restarts())
		}
		s.up().pass(40 * time.Second)
		for _, spare := range s.Snapshot().Spares {
			s.tell(SpareReady{spare.Gen})
		}
	}
	s.beside = nil
	spare := s.Snapshot().Spares[0].Gen
	s.exit(3).expect(Failed, 10).did(Dismiss{spare}).pass(time.Minute).expect(Starting, 11)
}

func TestASpareThatIsComingUpFollowsOnACrash(t *testing.T) {
	s := begin(t, Options{Standby: 1}).tell(Replayable{true}).up().did(SpawnSpare{Gen: 1}).pass(10 * time.Second).exit(1)
	s.did(TakeOver{Gen: 1, Old: -1}).serves(1, Starting).expect(Starting, 1)
	if due := s.Deadline().Sub(s.now); due != 20*time.Second {
		t.Errorf("it may take %s", due)
	}
	s.up().did(SpawnSpare{Gen: 2}).serves(1, Serving)
}

func TestAWishedRestartSwitchesAtOnceAndReloads(t *testing.T) {
	s := standby(t, Options{}).exit(42).serves(1, Serving).expect(Serving, 1)
	silently := SpawnSpare{Gen: 2, Reload: true, Cause: Requested, Source: SourceExit, Reason: "exit 42", Silent: true}
	s.did(TakeOver{Gen: 1, Old: -1, Ready: true}, silently)
	if got := s.last(); got.From != Sweeping || got.Cause != Requested || got.Source != SourceExit {
		t.Errorf("reported %+v", got)
	}
	s.tell(SpareReady{2}).did(TakeOver{Gen: 2, Old: 1, Ready: true}, SpawnSpare{Gen: 3}).expect(Serving, 1)

	s = begin(t, Options{Standby: 1}).tell(Replayable{true}).up().exit(42).did(SpawnSpare{Gen: 1}, Dismiss{1}).serves(2, Starting)
	if got := s.spawns[1]; got.Gen != 2 || got.Source != SourceExit {
		t.Errorf("started %+v", got)
	}
	s = standby(t, Options{}).tell(byTool).exit(143).serves(1, Serving)
	s.did(TakeOver{Gen: 1, Old: -1, Ready: true}, SpawnSpare{Gen: 2, Reload: true, Cause: Requested, Source: SourceTool,
		Reason: "new code", Silent: true})
	s = standby(t, Options{}).tell(Exited{Code: 1}, byTool, TreeGone{}).serves(1, Serving)
	if got := s.last(); got.Cause != Requested || got.Source != SourceTool {
		t.Errorf("reported %+v", got)
	}
}

// TestAnExit42LoopWithASpareIsHeldToTheFloor: the switch is at once, the starts are not.
func TestAnExit42LoopWithASpareIsHeldToTheFloor(t *testing.T) {
	s := standby(t, Options{})
	for range 60_000 {
		s.pass(10 * time.Millisecond)
		for _, spare := range s.Snapshot().Spares {
			s.tell(SpareReady{spare.Gen})
		}
		if s.up(); s.State() == Serving {
			s.exit(42)
		}
	}
	starts := len(s.spawns)
	for _, a := range s.beside {
		if _, ok := a.(SpawnSpare); ok {
			starts++
		}
	}
	if starts < 550 || starts > 2*605 {
		t.Errorf("%d starts in ten minutes", starts)
	}
}

func TestTheEndNeedsNoSpare(t *testing.T) {
	s := standby(t, Options{}).exit(0).expect(Stopped, 0).did(Dismiss{1})
	if s.doing != "SPXF" {
		t.Errorf("did %q", s.doing)
	}
	s = standby(t, rulesOf78()).exit(78).expect(Failed, 0).did(Dismiss{1})
	s.tell(byTool).serves(2, Starting).up().did(SpawnSpare{Gen: 3})
	s = standby(t, Options{}).tell(Stop{ClientEOF}).did(Dismiss{1})
	s.tell(Restart{Cause: Requested, Overlap: true}, Replayable{true}, SpareReady{1}).exit(143).expect(Stopped, 0).did()
}

func TestReplacedProcessesAreFollowedByFreshOnes(t *testing.T) {
	for name, events := range map[string][]Event{
		"replace":            {Restart{Cause: Replace}, Exited{Code: 143, Signalled: true}, TreeGone{}},
		"replace, too late":  {Exited{Code: 1}, Restart{Cause: Replace}, TreeGone{}},
		"probe":              {Restart{Cause: ProbeExit}, Exited{Code: 143, Signalled: true}, TreeGone{}},
		"a probe's own exit": {Exited{Code: 1, Probe: true}, TreeGone{}},
	} {
		t.Run(name, func(t *testing.T) {
			standby(t, Options{}).tell(events...).did(Dismiss{1}).serves(2, Starting)
		})
	}
}

func TestALimitNeedsNoNewCode(t *testing.T) {
	s := standby(t, preset(t, "exponential"))
	reported := len(s.reports)
	s.tell(limit).did(TakeOver{Gen: 1, Old: 0, Ready: true}, SpawnSpare{Gen: 2}).serves(1, Serving).expect(Serving, 1)
	want := Report{From: Serving, To: Serving, Gen: 1, Restarts: 1, Cause: Requested, Source: SourceLimit, Reason: "too old", AtOnce: true}
	if diff := cmp.Diff([]Report{want}, s.reports[reported:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.tell(limit).did(Throttled{time.Second}).pass(time.Second)
	s.did(SpawnSpare{Gen: 3, Reload: true, Cause: Requested, Source: SourceLimit, Reason: "too old"})
	s.tell(limit, limit).did()
	s.tell(SpareReady{2}).did().tell(SpareReady{3}).did(TakeOver{Gen: 3, Old: 1, Ready: true}).pass(time.Hour).did()

	s = standby(t, Options{}).tell(Restart{Cause: Requested, Source: SourceLimit}).exit(143).serves(1, Serving)
	s.did(TakeOver{Gen: 1, Old: -1, Ready: true}, SpawnSpare{Gen: 2}) // it runs the same code: no reload
	s = standby(t, Options{}).tell(Exited{Code: 1}, limit, TreeGone{})
	if got := s.last().Cause; got != Crash {
		t.Errorf("a limit of a dead process turned its crash into %s", got)
	}
}

func TestALimitForgetsNoFailures(t *testing.T) {
	s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up()
	s.tell(limit, SpareReady{3}).serves(3, Serving).exit(1)
	if got := s.last().Delay; got != 4*time.Second {
		t.Errorf("the next crash waits %s", got)
	}
}

func TestSparesOfOldCode(t *testing.T) {
	s := standby(t, Options{}).tell(overlap).did(newCode(2))
	s.tell(SpareReady{2}).did(TakeOver{Gen: 2, Ready: true}, Dismiss{1}, SpawnSpare{Gen: 3})

	s = standby(t, Options{}).tell(overlap, SpareFailed{2, "exit 1"})
	s.did(newCode(2), ReloadFailed{Gen: 2, Source: SourceTool, Reason: "new code", Why: "exit 1"}, SpawnSpare{Gen: 3})
	s.tell(SpareReady{3}).did(Dismiss{1}).exit(1).did(TakeOver{Gen: 3, Old: -1, Ready: true}, SpawnSpare{Gen: 4})

	s = standby(t, Options{}).tell(overlap, SpareFailed{2, "exit 1"}, SpareFailed{3, "exit 1"}).pass(0)
	s.beside = nil
	s.exit(1).did(TakeOver{Gen: 1, Old: -1, Ready: true}, SpawnSpare{Gen: 4, Reload: true, Cause: Requested, Source: SourceTool,
		Reason: "new code", Silent: true})
	s.tell(SpareReady{4}).did(TakeOver{Gen: 4, Old: 1, Ready: true}, SpawnSpare{Gen: 5}).serves(4, Serving)
}

// TestASilentReloadKeepsToTheBackoffAPersonDoesNot: a spare of old code serves, and the crashes' delay is long by now.
func TestASilentReloadKeepsToTheBackoffAPersonDoesNot(t *testing.T) {
	story := func() *story {
		s := standby(t, preset(t, "exponential")).tell(overlap, SpareFailed{2, "exit 1"}).pass(0)
		s.tell(SpareFailed{3, "exit 1"}).pass(0).exit(1).serves(1, Serving)
		s.beside = nil
		return s
	}
	story().pass(time.Second - 1).did().pass(1).did(SpawnSpare{Gen: 4, Reload: true, Cause: Requested, Source: SourceTool,
		Reason: "new code", Silent: true})
	story().pass(500 * time.Millisecond).tell(overlap).did(Throttled{500 * time.Millisecond}).pass(500 * time.Millisecond).did(newCode(4))
	s := story().exit(1)
	if got := s.last(); got.To != Backoff || got.Delay != 2*time.Second {
		t.Errorf("the next crash: %+v", got)
	}
}

func TestAReloadAfterASwitchNeedsNoPause(t *testing.T) {
	standby(t, preset(t, "tiered")).exit(42).did(TakeOver{Gen: 1, Old: -1, Ready: true},
		SpawnSpare{Gen: 2, Reload: true, Cause: Requested, Source: SourceExit, Reason: "exit 42", Silent: true})
}

func TestSparesOfOldCodeDoNotPileUp(t *testing.T) {
	s := standby(t, Options{})
	for range 50 {
		s.tell(overlap).pass(2 * time.Second)
		for _, spare := range s.Snapshot().Spares {
			if spare.Reload {
				s.tell(SpareFailed{spare.Gen, "exit 1"})
			}
		}
		if n := len(s.Snapshot().Spares); n > 2 {
			t.Fatalf("%+v", s.Snapshot().Spares)
		}
	}
}

func TestFreshSparesGoFirst(t *testing.T) {
	s := standby(t, Options{}).tell(overlap, SpareFailed{2, "exit 1"}, Exited{Code: 1}, SpareReady{3})
	want := []Spare{{Gen: 1, Ready: true, Stale: true}, {Gen: 3, Ready: true}}
	if diff := cmp.Diff(want, s.Snapshot().Spares); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	s.beside = nil
	s.tell(TreeGone{}).did(TakeOver{Gen: 3, Old: -1, Ready: true}, Dismiss{1}, SpawnSpare{Gen: 4})
}

func TestSparesThatFailAreTriedLessAndLessOften(t *testing.T) {
	s := begin(t, Options{Standby: 1}).tell(Replayable{true}).up().did(SpawnSpare{Gen: 1})
	gen := 1
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		s.tell(SpareFailed{gen, "exit 1"}).pass(wait*time.Second - 1).did()
		gen++
		s.pass(1).did(SpawnSpare{Gen: gen})
	}
	s.pass(30 * time.Second).did(Dismiss{gen}).pass(time.Minute - 1).did().pass(1).did(SpawnSpare{Gen: gen + 1})
	s.tell(SpareReady{gen + 1}).pass(time.Hour).did()
	s.tell(SpareFailed{gen + 1, "it died"}).pass(time.Second).did(SpawnSpare{Gen: gen + 2}).expect(Serving, 0)
}

func TestCondemned(t *testing.T) {
	condemned := MarkUnhealthy{Cause: Unhealthy, Reason: "it does not answer"}
	s := begin(t, preset(t, "exponential")).up().tell(condemned)
	if got := s.last(); s.doing != "SK" || got.To != Stopping || got.Cause != Unhealthy || got.Reason != "it does not answer" {
		t.Errorf("did %q, reported %+v", s.doing, got)
	}
	if s.Snapshot().Planned {
		t.Error("planned")
	}
	s.exit(137).expect(Backoff, 1)
	begin(t, Options{}).tell(condemned).exit(137).expect(Starting, 1)
	s = begin(t, Options{}).up().tell(byTool, condemned)
	if s.doing != "SDK" || s.Snapshot().Cause != Requested {
		t.Errorf("while it is being ended: did %q because of %s", s.doing, s.Snapshot().Cause)
	}
	s = begin(t, Options{}).up().tell(MarkUnhealthy{Gen: 7, Cause: Memory}).expect(Serving, 0)
	if s.doing != "S" {
		t.Errorf("did %q", s.doing)
	}
}
