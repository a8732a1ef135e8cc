package supervise

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// did compares what was done about spares since the last call, and forgets it.
func (s *story) did(want ...Action) *story {
	s.t.Helper()
	if diff := cmp.Diff(want, s.beside); diff != "" {
		s.t.Fatalf("(-want +got):\n%s", diff)
	}
	s.beside = nil
	return s
}

// serves expects which process serves, in which state.
func (s *story) serves(gen int, state State) *story {
	s.t.Helper()
	if s.Generation() != gen || s.State() != state {
		s.t.Fatalf("%d is %s, want %d to be %s", s.Generation(), s.State(), gen, state)
	}
	return s
}

// newCode is the spare that overlap starts.
func newCode(gen int) SpawnSpare {
	return SpawnSpare{Gen: gen, Reload: true, Cause: Requested, Source: SourceTool, Reason: "new code"}
}

func TestOverlapSwitchesWhenTheNewProcessCanServe(t *testing.T) {
	s := begin(t, Options{}).up().pass(time.Minute).tell(overlap).did(newCode(1)).serves(0, Serving)
	reported := len(s.reports)
	s.pass(10*time.Second).tell(SpareReady{1}).did(TakeOver{Gen: 1, Old: 0, Ready: true}).serves(1, Serving).expect(Serving, 1)
	want := Report{From: Serving, To: Serving, Gen: 1, Restarts: 1, Cause: Requested, Source: SourceTool, Reason: "new code"}
	if diff := cmp.Diff([]Report{want}, s.reports[reported:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if snap := s.Snapshot(); !snap.Since.Equal(s.now) || snap.Cause != NoCause || len(snap.Spares) > 0 {
		t.Errorf("then: %+v", snap)
	}
	if s.doing != "SPO" {
		t.Errorf("did %q: the old process is its owner's to retire", s.doing)
	}
	if s.tell(Exited{Gen: 0, Code: 1}, TreeGone{0}).serves(1, Serving); s.Restarts() != 1 {
		t.Error("the old one's end counted")
	}
}

func TestAReloadThatFailsChangesNothing(t *testing.T) {
	why := func(gen int, why string) ReloadFailed {
		return ReloadFailed{Gen: gen, Source: SourceTool, Reason: "new code", Why: why}
	}
	s := begin(t, Options{}).up().tell(overlap, SpareFailed{1, "exit 1"}).did(newCode(1), why(1, "exit 1"))
	s.pass(time.Hour).serves(0, Serving)
	s.tell(overlap).did(newCode(2)).pass(30*time.Second - 1).did()
	s.pass(1).did(Dismiss{2}, why(2, "no answer to the handshake within 30s"))
	s.tell(SpareReady{2}, SpareFailed{2, "late"}).did().serves(0, Serving)
	s.tell(overlap, Replayable{}).did(newCode(3), Dismiss{3}, why(3, "the client's handshake is not known any more"))
	s.tell(marked, SpareFailed{4, "exit 1"})
	s.beside = nil
	s.tell(marked, Replayable{}).did(ReloadFailed{Gen: -1, Source: SourceMarker, Reason: "restart marker",
		Why: "the client's handshake is not known any more"}).pass(time.Hour).did()
}

func TestAFailedReloadLeavesTheServingProcessAsHealthyAsItWas(t *testing.T) {
	marker := Restart{Cause: Requested, Source: SourceMarker, Overlap: true}
	s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up().pass(30 * time.Second)
	s.tell(marker, SpareFailed{3, "exit 1"}).pass(30 * time.Second).exit(1)
	if got := s.last().Delay; got != time.Second {
		t.Errorf("the next crash waits %s: it was up for a minute", got)
	}
	s = begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up()
	s.tell(marker, SpareFailed{3, "exit 1"}, marker, Replayable{}).pass(time.Minute).exit(1)
	if got := s.last().Delay; got != time.Second {
		t.Errorf("after one that was not begun, it waits %s", got)
	}
}

func TestAPersonsReloadForgetsFailuresEvenIfOneWasWaiting(t *testing.T) {
	s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up()
	marker := Restart{Cause: Requested, Source: SourceMarker, Overlap: true}
	s.tell(marker, SpareReady{3}, marker, overlap).pass(time.Second).tell(SpareReady{4}).serves(4, Serving).exit(1)
	if got := s.last().Delay; got != time.Second {
		t.Errorf("the next crash waits %s", got)
	}
}

func TestTheLatestReloadWins(t *testing.T) {
	s := begin(t, Options{}).up().tell(overlap).pass(200 * time.Millisecond)
	latest := Restart{Cause: Requested, Source: SourceControl, Reason: "newest code", Overlap: true}
	s.tell(latest).did(newCode(1), Dismiss{1}, Throttled{800 * time.Millisecond}).pass(800 * time.Millisecond)
	s.did(SpawnSpare{Gen: 2, Reload: true, Cause: Requested, Source: SourceControl, Reason: "newest code"})
	s.tell(SpareReady{1}).did().tell(SpareReady{2}).did(TakeOver{Gen: 2, Ready: true}).expect(Serving, 2)
	if got := s.last(); got.Source != SourceControl || got.Reason != "newest code" {
		t.Errorf("reported %+v", got)
	}
}

// TestWishesWithoutEndStillLeadToNewProcesses: whoever saves all the time gets a new process all the same, and the last
// wish is fulfilled, too.
func TestWishesWithoutEndStillLeadToNewProcesses(t *testing.T) {
	s := begin(t, Options{}).up()
	var warm time.Time // when the process that is coming up has come up
	gen := -1
	step := func() {
		s.pass(100 * time.Millisecond)
		if all := s.Snapshot().Spares; len(all) == 0 {
			return
		} else if all[0].Gen != gen {
			gen, warm = all[0].Gen, s.now.Add(5*time.Second)
		}
		if !s.now.Before(warm) {
			s.tell(SpareReady{gen})
		}
	}
	for range 600 {
		s.tell(overlap)
		step()
	}
	switches := len(s.reports)
	if took := strings.Count(s.doing, "O"); took < 10 {
		t.Errorf("%d took over within a minute: %s", took, s.doing)
	}
	s.tell(Restart{Cause: Requested, Source: SourceWatch, Reason: "the last one", Overlap: true})
	for range 120 {
		step()
	}
	last := s.last()
	if last.Reason != "the last one" || last.Source != SourceWatch || len(s.reports) > switches+2 || len(s.Snapshot().Spares) > 0 {
		t.Errorf("last reported %+v, spares %v", last, s.Snapshot().Spares)
	}
}

func TestAReloadIsPutOffOnceAtMost(t *testing.T) {
	late := func(s Source) Restart {
		return Restart{Cause: Requested, Source: s, Reason: "later code", Overlap: true}
	}
	later := func(gen int) SpawnSpare {
		return SpawnSpare{Gen: gen, Reload: true, Cause: Requested, Source: SourceSignal, Reason: "later code"}
	}
	putOff := func() *story {
		return begin(t, Options{}).up().tell(overlap, overlap).did(newCode(1), Dismiss{1}, Throttled{time.Second}).
			pass(time.Second).did(newCode(2)).tell(late(SourceWatch), late(SourceSignal)).did().expect(Serving, 2).pass(time.Second)
	}
	s := putOff().tell(SpareReady{2}).did(TakeOver{Gen: 2, Ready: true}, later(3)).serves(2, Serving).expect(Serving, 3)
	s.tell(overlap).did(Dismiss{3}, Throttled{time.Second}).pass(time.Second).did(newCode(4)).tell(SpareReady{4}).did(TakeOver{Gen: 4, Old: 2, Ready: true})

	failed := ReloadFailed{Gen: 2, Source: SourceTool, Reason: "new code", Why: "exit 1"}
	putOff().tell(SpareFailed{2, "exit 1"}).did(failed, later(3)).serves(0, Serving)
	putOff().tell(Handshake{0}, SpareFailed{2, "exit 1"}).did(failed).tell(Ready{0}).did(later(3))

	s = putOff().tell(Exited{Code: 1}, SpareFailed{2, "exit 1"}, TreeGone{}).did(failed).serves(3, Starting).expect(Starting, 3)
	if got := s.spawns[1]; got.Cause != Requested || got.Source != SourceSignal || got.Reason != "later code" {
		t.Errorf("started %+v", got)
	}
	s.up().pass(time.Hour).did()
	putOff().exit(1).did(TakeOver{Gen: 2, Old: -1}).serves(2, Starting).up().did(later(3))

	putOff().tell(byTool).did(Dismiss{2}).exit(143).serves(3, Starting).up().pass(time.Hour).did()
	s = putOff().tell(Replayable{})
	s.did(Dismiss{2}, ReloadFailed{Gen: 2, Source: SourceTool, Reason: "new code", Why: "the client's handshake is not known any more"},
		ReloadFailed{Gen: -1, Source: SourceSignal, Reason: "later code", Why: "the client's handshake is not known any more"})
	s.pass(time.Hour).did()
}

// requests are the sources of a restart that somebody asks for.
var requests = []Source{SourceExit, SourceMarker, SourceTool, SourceSignal, SourceControl, SourceWatch, SourceMonitor}

// TestEveryReloadWaitsForTheFloor: whoever asks, one process a second is started; the requests that wait share one.
func TestEveryReloadWaitsForTheFloor(t *testing.T) {
	for _, source := range requests {
		t.Run(source.String(), func(t *testing.T) {
			lastRequest := Restart{Cause: Requested, Source: source, Reason: "new code", Overlap: true}
			start := func(gen int) SpawnSpare {
				return SpawnSpare{Gen: gen, Reload: true, Cause: Requested, Source: source, Reason: "new code"}
			}
			s := begin(t, preset(t, "tiered")).up().tell(lastRequest, SpareReady{1}).did(start(1), TakeOver{Gen: 1, Ready: true})
			s.tell(lastRequest).did(Throttled{time.Second}).pass(300*time.Millisecond).tell(lastRequest, lastRequest).did().expect(Serving, 2)
			s.pass(700*time.Millisecond).did(start(2)).tell(SpareReady{2}).did(TakeOver{Gen: 2, Old: 1, Ready: true}).expect(Serving, 2)
			s.pass(time.Hour).did()
		})
	}
}

// TestARestartEachMoment asks for a restart all the time, in every way that there is, with spares and without.
func TestARestartEachMoment(t *testing.T) {
	for _, opts := range []Options{{}, {Standby: 1}, preset(t, "tiered")} {
		for _, source := range requests[1:] { // nothing exits here by itself
			for _, beside := range []bool{true, false} {
				s := begin(t, opts).tell(Replayable{opts.Standby > 0}).up().pass(time.Minute)
				s.doing = ""
				for range 500 {
					if s.pass(20 * time.Millisecond); s.State() == Serving {
						s.tell(Restart{Cause: Requested, Source: source, Overlap: beside})
					}
					for _, spare := range s.Snapshot().Spares {
						s.tell(SpareReady{spare.Gen})
					}
					if s.State() == Stopping {
						s.exit(143)
					}
					s.up()
				}
				requested, standby := strings.Count(s.doing, "O")+strings.Count(s.doing, "S"), strings.Count(s.doing, "P")
				if requested > 11 || requested < 5 || standby > 22 {
					t.Errorf("%s, beside %v, %d standby, %s: %d restarts and %d spares in 10 s", source, beside, opts.Standby,
						s.tracker.Policy().Name, requested, standby)
				}
			}
		}
	}
}

func TestAServersOwnReloadWaitsForTheFloorButNotForThePause(t *testing.T) {
	s := begin(t, preset(t, "tiered")).up().tell(marked, SpareReady{1})
	s.beside = nil
	s.tell(marked).did(Throttled{time.Second})
	if due := s.Deadline().Sub(s.now); due != time.Second {
		t.Errorf("starts in %s", due)
	}
	s.pass(time.Second).did(SpawnSpare{Gen: 2, Reload: true, Cause: Requested, Source: SourceMarker, Reason: "restart marker"})
}

func TestWithoutOverlapTheOldProcessEndsFirst(t *testing.T) {
	s := begin(t, Options{}).up().tell(overlap, byTool).did(newCode(1), Dismiss{1}).serves(0, Stopping)
	if s.doing != "SPXD" {
		t.Errorf("did %q", s.doing)
	}
	s = begin(t, Options{}).tell(overlap).serves(0, Stopping).did()
	s.exit(143).serves(1, Starting)
}

func TestTheReloadsProcessFollowsOnOneThatDies(t *testing.T) {
	for name, death := range map[string][]Event{
		"a crash":           {Exited{Code: 1}, TreeGone{}},
		"its own wish":      {Exited{Code: 42}, TreeGone{}},
		"a closed stdout":   {StdoutClosed{}, Exited{Code: 137, Signalled: true}, TreeGone{}},
		"it was condemned":  {MarkUnhealthy{Cause: Memory, Reason: "2 GiB"}, Exited{Code: 137, Signalled: true}, TreeGone{}},
		"a person's signal": {Exited{Code: 143, Signalled: true}, TreeGone{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, Options{}).up().tell(overlap).did(newCode(1)).pass(10 * time.Second).tell(death...)
			s.did(TakeOver{Gen: 1, Old: -1}).serves(1, Starting)
			if due := s.Deadline().Sub(s.now); due != 20*time.Second {
				t.Errorf("it may take %s", due)
			}
			s.up().serves(1, Serving).expect(Serving, 2).pass(time.Hour).did()
		})
		t.Run(name+", and it is ready", func(t *testing.T) {
			s := begin(t, Options{}).up().tell(overlap).did(newCode(1)).tell(death[:len(death)-1]...)
			s.tell(SpareReady{1}).did().tell(death[len(death)-1]).did(TakeOver{Gen: 1, Old: -1, Ready: true}).serves(1, Serving)
		})
	}
}

func TestAnAdoptedProcessThatDoesNotComeUpIsAFailedStart(t *testing.T) {
	s := begin(t, preset(t, "exponential")).up().tell(overlap).exit(1).serves(1, Starting).pass(30*time.Second).serves(1, Stopping)
	if got := s.last(); got.Cause != StartFail {
		t.Errorf("reported %+v", got)
	}
	s.exit(137).expect(Backoff, 3)
}

// TestNewsOfASpareThatTookOverMeanwhile: the owner may have seen them before it heard of the switch.
func TestNewsOfASpareThatTookOverMeanwhile(t *testing.T) {
	s := begin(t, Options{}).up().tell(overlap).exit(1).serves(1, Starting)
	s.tell(SpareReady{1}).serves(1, Serving)
	s.tell(SpareFailed{1, "it died"}).serves(1, Backoff).pass(time.Second).serves(2, Starting).expect(Starting, 3)
	if got := s.spawns[1]; got.Cause != Crash || got.Reason != "it died" {
		t.Errorf("started %+v", got)
	}
	s = begin(t, Options{}).up().tell(overlap).exit(1).tell(SpareFailed{1, "it died"})
	if got := s.last(); s.State() != Backoff || got.Cause != StartFail {
		t.Errorf("%s, reported %+v", s.State(), got)
	}
	s = begin(t, Options{}).up().tell(overlap).exit(1).tell(Exited{Gen: 1, Code: 1}, SpareFailed{1, "it died"}).serves(1, Sweeping)
	s.tell(TreeGone{1}).serves(1, Backoff)
	s = begin(t, Options{}).up().tell(overlap).exit(1).tell(Stop{Signal}, SpareFailed{1, "it died"}).expect(Stopped, 2)
	if !s.Snapshot().Over {
		t.Error("not over")
	}
}

func TestAPromisedReloadShortensTheWaitAfterACrash(t *testing.T) {
	s := begin(t, preset(t, "tiered")).up().tell(marked, SpareReady{1}, marked)
	s.beside = nil
	s.pass(300 * time.Millisecond).exit(1)
	if got := s.last(); got.To != Backoff || got.Delay != 700*time.Millisecond {
		t.Errorf("reported %+v", got)
	}
	s.pass(700*time.Millisecond).serves(2, Starting).up().pass(time.Hour).did()
}

func TestAReloadWaitsForAHandshakeUnderWay(t *testing.T) {
	s := begin(t, Options{}).up().tell(overlap, Handshake{0}, SpareReady{1}).did(newCode(1)).serves(0, Starting)
	s.tell(Ready{0}).did(TakeOver{Gen: 1, Ready: true}).serves(1, Serving)
}

func TestAReloadEndsWithWhatEndsEverything(t *testing.T) {
	for name, ev := range map[string]Event{
		"replace": Restart{Cause: Replace}, "probe": Restart{Cause: ProbeExit}, "client leaves": Stop{ClientEOF}, "signal": Stop{Signal},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, Options{Standby: 1}).up().tell(Replayable{true}, overlap, ev).did(SpawnSpare{Gen: 1}, newCode(2), Dismiss{1}, Dismiss{2})
			s.tell(SpareReady{1}, SpareReady{2}).exit(143).did()
		})
	}
}

func TestAProcessThatAlwaysWishesAnotherGetsOneASecond(t *testing.T) {
	s := begin(t, Options{}).up()
	lastRequest := Restart{Cause: Requested, Source: SourceMarker, Overlap: true}
	for end := t0.Add(time.Hour); s.now.Before(end); {
		if s.tell(lastRequest); len(s.Snapshot().Spares) == 0 {
			s.pass(s.Deadline().Sub(s.now))
		}
		s.tell(SpareReady{s.Generation() + 1}).pass(10 * time.Millisecond)
	}
	if gen := s.Generation(); gen < 3500 || gen > 3601 || s.Restarts() != gen {
		t.Errorf("%d switches in an hour, %d restarts", gen, s.Restarts())
	}
}

// A restart that was asked for follows, also when the old process ends by itself while the new one comes up.
func TestAReloadOutlivesTheEndOfTheOldProcess(t *testing.T) {
	for name, exit := range map[string]int{"a clean exit": 0, "a wrong set-up": 78, "a crash": 1} {
		t.Run(name, func(t *testing.T) {
			begin(t, rulesOf78()).up().tell(overlap, Exited{Code: exit}, TreeGone{}, SpareReady{1}).expect(Serving, 2)
		})
	}
}
