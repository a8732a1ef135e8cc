package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// story drives a machine through a life and keeps what it said.
type story struct {
	*Machine
	t       *testing.T
	now     time.Time
	reports []Report
	spawns  []Spawn
	beside  []Action // what concerns spares
	doing   string   // the letters of all actions
}

func begin(t *testing.T, opts Options) *story {
	s := &story{Machine: New(opts), t: t, now: t0}
	s.tell(Start{})
	return s
}

func (s *story) tell(events ...Event) *story {
	for _, ev := range events {
		s.keep(s.Step(s.now, 0, ev))
	}
	return s
}

func (s *story) keep(actions []Action) {
	s.doing += letters(actions)
	for _, a := range actions {
		switch a := a.(type) {
		case Report:
			s.reports = append(s.reports, a)
		case Spawn:
			s.spawns = append(s.spawns, a)
		case SpawnSpare, Throttled, TakeOver, Dismiss, ReloadFailed:
			s.beside = append(s.beside, a)
		}
	}
}

// pass lets time go by, with every deadline kept.
func (s *story) pass(d time.Duration) *story {
	for end := s.now.Add(d); ; {
		due := s.Deadline()
		if due.IsZero() || due.After(end) {
			s.now = end
			return s
		}
		s.now = due
		s.keep(s.Tick(s.now, 0))
	}
}

// exit ends the running process and clears it away.
func (s *story) exit(code int) *story {
	return s.tell(Exited{Gen: s.Generation(), Code: code}, TreeGone{s.Generation()})
}

func (s *story) up() *story { return s.tell(Ready{s.Generation()}) }

// last returns the latest report.
func (s *story) last() Report {
	s.t.Helper()
	if len(s.reports) == 0 {
		s.t.Fatal("nothing was reported")
	}
	return s.reports[len(s.reports)-1]
}

func (s *story) expect(state State, restarts int) *story {
	s.t.Helper()
	if s.State() != state || s.Restarts() != restarts {
		s.t.Fatalf("%s after %d restarts, want %s after %d", s.State(), s.Restarts(), state, restarts)
	}
	return s
}

func preset(t *testing.T, name string) Options {
	t.Helper()
	p, err := backoff.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Backoff: p}
}

var byTool = Restart{Cause: Requested, Source: SourceTool, Reason: "new code"}

func TestCleanExitFinishes(t *testing.T) {
	s := begin(t, Options{}).up().exit(0).expect(Stopped, 0)
	if s.doing != "SF" || !s.Snapshot().Over {
		t.Errorf("did %q", s.doing)
	}
	want := Report{From: Sweeping, To: Stopped, Cause: Clean, Reason: "exit 0"}
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWatchdogDay is the log of WD-15, as reports.
func TestWatchdogDay(t *testing.T) {
	s := begin(t, preset(t, "tiered")).up().exit(42)
	want := Report{From: Sweeping, To: Backoff, Restarts: 1, Cause: Requested, Source: SourceExit, Reason: "exit 42",
		Delay: 500 * time.Millisecond}
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("restart (-want +got):\n%s", diff)
	}
	s.pass(500*time.Millisecond).up().expect(Serving, 1).exit(42)
	want = Report{From: Sweeping, To: Backoff, Gen: 1, Restarts: 2, Cause: Requested, Source: SourceExit, Reason: "exit 42",
		Delay: 500 * time.Millisecond, Throttled: true}
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("restart with throttle (-want +got):\n%s", diff)
	}
	want = Report{From: Backoff, To: Backoff, Gen: 1, Restarts: 2, Cause: Requested, Source: SourceExit, Reason: "exit 42",
		Delay: 500 * time.Millisecond, Released: true}
	if diff := cmp.Diff(want, s.pass(500*time.Millisecond).last()); diff != "" {
		t.Errorf("after the throttle (-want +got):\n%s", diff)
	}
	s.pass(500*time.Millisecond).up().expect(Serving, 2).exit(1)
	want = Report{From: Sweeping, To: Backoff, Gen: 2, Restarts: 3, Cause: Crash, Reason: "exit 1", Delay: time.Second}
	if diff := cmp.Diff(want, s.last()); diff != "" {
		t.Errorf("crash (-want +got):\n%s", diff)
	}
	s.pass(time.Second).expect(Starting, 3)
	if diff := cmp.Diff(Spawn{Gen: 3, Cause: Crash, Reason: "exit 1"}, s.spawns[3]); diff != "" {
		t.Errorf("spawn (-want +got):\n%s", diff)
	}
}

func TestExit42LoopRestartsOnceASecond(t *testing.T) {
	s := begin(t, Options{})
	end, last := t0.Add(6*time.Hour), t0
	for s.now.Before(end) {
		s.up().exit(42).pass(0)
		if s.State() == Backoff {
			s.pass(s.Deadline().Sub(s.now))
		}
		if n := len(s.spawns); n > 2 && s.now.Sub(last) < time.Second {
			t.Fatalf("start %d came %s after the one before", n, s.now.Sub(last))
		}
		last = s.now
		s.now = s.now.Add(10 * time.Millisecond)
	}
	if n := len(s.spawns); n < 21_000 || n > 21_602 {
		t.Errorf("%d starts in six hours", n)
	}
}

func TestFirstReasonWins(t *testing.T) {
	for name, c := range map[string]struct {
		before Event
		exit   Exited
		cause  Cause
	}{
		"a restart ends in a crash":         {byTool, Exited{Code: 1}, Requested},
		"a restart ends by our signal":      {byTool, Exited{Code: 143, Signalled: true}, Requested},
		"a restart ends clean":              {byTool, Exited{}, Requested},
		"a replacement ends in a crash":     {Restart{Cause: Replace}, Exited{Code: 1}, Replace},
		"a probed one ends clean":           {Restart{Cause: ProbeExit}, Exited{}, ProbeExit},
		"a closed stdout, then exit 42":     {StdoutClosed{}, Exited{Code: 42}, Crash},
		"a closed stdout, then clean":       {StdoutClosed{}, Exited{}, Crash},
		"a probe ended it":                  {Drained{}, Exited{Code: 1, Probe: true}, ProbeExit},
		"a restart, and a probe was on":     {byTool, Exited{Code: 1, Probe: true}, Requested},
		"a restart by marker, then exit 42": {Restart{Cause: Requested, Source: SourceMarker}, Exited{Code: 42}, Requested},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, Options{}).up().tell(c.before, c.exit).expect(Sweeping, 0)
			if snap := s.Snapshot(); snap.Cause != c.cause || snap.Planned != (c.cause != Crash) {
				t.Errorf("cause %s, planned %v", snap.Cause, snap.Planned)
			}
			counted := 1
			if c.cause == Replace || c.cause == ProbeExit {
				counted = 0
			}
			s.tell(TreeGone{0}).expect(Starting, counted)
			if got := s.spawns[1]; got.Cause != c.cause || got.Gen != 1 {
				t.Errorf("spawned %+v", got)
			}
			if snap := s.Snapshot(); snap.Cause != NoCause {
				t.Errorf("the new process has cause %s", snap.Cause)
			}
		})
	}
}

func TestPlannedRestartDrainsThenTerminatesThenKills(t *testing.T) {
	s := begin(t, Options{}).up().tell(byTool)
	s.pass(999 * time.Millisecond)
	if s.doing != "SD" {
		t.Fatalf("while draining: did %q", s.doing)
	}
	if s.pass(time.Millisecond); s.doing != "SDIT" {
		t.Fatalf("after the drain: did %q", s.doing)
	}
	if s.pass(2 * time.Second); s.doing != "SDITK" {
		t.Fatalf("after the grace: did %q", s.doing)
	}
	s.tell(Exited{Code: 137, Signalled: true}, TreeGone{}).expect(Starting, 1)
}

func TestStopLadders(t *testing.T) {
	for name, c := range map[string]struct {
		before []Event
		stops  []Event
		want   map[time.Duration]string // what was done by then
	}{
		"client leaves": {[]Event{Ready{}}, []Event{Stop{ClientEOF}, Drained{}},
			map[time.Duration]string{1499: "SI", 1500: "SIT", 1999: "SIT", 2000: "SITK"}},
		"client leaves while calls run": {[]Event{Ready{}}, []Event{Stop{ClientEOF}},
			map[time.Duration]string{9999: "SI", 10_000: "SIT", 10_499: "SIT", 10_500: "SITK"}},
		"client leaves during the handshake": {[]Event{Handshake{}}, []Event{Stop{ClientEOF}},
			map[time.Duration]string{9999: "SI", 10_000: "SIT", 10_500: "SITK"}},
		"client leaves before anything was asked": {nil, []Event{Stop{ClientEOF}},
			map[time.Duration]string{1499: "SI", 1500: "SIT", 2000: "SITK"}},
		"client leaves, then it comes up and answers": {[]Event{Handshake{}}, []Event{Stop{ClientEOF}, Ready{}, Drained{}},
			map[time.Duration]string{1499: "SI", 1500: "SIT", 2000: "SITK"}},
		"client leaves, then it comes up with calls": {[]Event{Handshake{}}, []Event{Stop{ClientEOF}, Ready{}},
			map[time.Duration]string{9999: "SI", 10_000: "SIT", 10_500: "SITK"}},
		"signal": {[]Event{Ready{}}, []Event{Stop{Signal}},
			map[time.Duration]string{0: "ST", 599: "ST", 600: "STK"}},
		"client leaves, then a signal": {[]Event{Ready{}}, []Event{Stop{ClientEOF}, Stop{Signal}},
			map[time.Duration]string{599: "SIT", 600: "SITK"}},
		"a signal, then the client leaves": {[]Event{Ready{}}, []Event{Stop{Signal}, Stop{ClientEOF}},
			map[time.Duration]string{499: "ST", 600: "STK"}},
		"signal during a restart": {[]Event{Ready{}, byTool, Drained{}}, []Event{Stop{Signal}},
			map[time.Duration]string{599: "SDIT", 600: "SDITK"}},
	} {
		t.Run(name, func(t *testing.T) {
			for d, want := range c.want {
				s := begin(t, Options{}).tell(c.before...).tell(c.stops...).pass(d * time.Millisecond)
				if s.doing != want {
					t.Errorf("after %d ms: did %q, want %q", d, s.doing, want)
				}
				s.exit(137).expect(Stopped, 0)
				if s.doing != want+"F" {
					t.Errorf("did %q at the end", s.doing)
				}
			}
		})
	}
}

func TestOneThatHasNotComeUpHasTimeToUndoWhatItInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		before, end []Event
		want        map[time.Duration]string // what was done by then
	}{
		"it takes too long": {[]Event{Handshake{}}, nil, map[time.Duration]string{29_999: "S", 30_000: "SIT", 59_999: "SIT", 60_000: "SITK"}},
		"it is replaced":    {nil, []Event{Restart{Cause: Replace}}, map[time.Duration]string{29_999: "ST", 30_000: "STK"}},
		"its client leaves": {nil, []Event{Stop{ClientEOF}}, map[time.Duration]string{1500: "SIT", 31_499: "SIT", 31_500: "SITK"}},
		"outlive is to end": {[]Event{Handshake{}}, []Event{Stop{Signal}}, map[time.Duration]string{599: "ST", 600: "STK"}},
		"it has come up":    {[]Event{Ready{}}, []Event{Restart{Cause: Replace}}, map[time.Duration]string{299: "ST", 300: "STK"}},
		"it is asked anew":  {[]Event{Ready{}, Handshake{}}, []Event{Restart{Cause: Replace}}, map[time.Duration]string{29_999: "ST", 30_000: "STK"}},
	} {
		t.Run(name, func(t *testing.T) {
			for d, want := range c.want {
				s := begin(t, Options{InstallGrace: 30 * time.Second}).tell(c.before...).tell(c.end...).pass(d * time.Millisecond)
				if s.doing != want {
					t.Errorf("after %d ms: did %q, want %q", d, s.doing, want)
				}
			}
		})
	}
}

func TestWishDuringAnotherEndIsRemembered(t *testing.T) {
	for name, exit := range map[string]int{"a crash": 1, "a clean exit": 0, "a wrong set-up": 78, "its own wish": 42} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, rulesOf78()).up().tell(Exited{Code: exit}, byTool, byTool, TreeGone{}).expect(Starting, 1)
			if got := s.spawns[1].Cause; got != Requested {
				t.Errorf("started because of %s", got)
			}
			s.up().pass(time.Hour).expect(Serving, 1)
		})
	}
	s := begin(t, Options{}).tell(Refused{}, byTool).exit(143).expect(Starting, 1)
	if s.spawns[1].Source != SourceTool {
		t.Errorf("after a refused handshake: %+v", s.spawns[1])
	}
}

// A server whose start takes longer than the next request comes up all the same. What was asked for meanwhile follows.
func TestConstantRequestsLetAProcessComeUp(t *testing.T) {
	replaced := func(t *testing.T, wish Restart) *story {
		t.Helper()
		s := begin(t, Options{}).tell(Handshake{0}, wish).exit(143).serves(1, Starting).tell(Handshake{1})
		for range 5 {
			s.pass(3*time.Second).tell(wish).serves(1, Starting)
		}
		return s
	}
	t.Run("its end first", func(t *testing.T) {
		s := replaced(t, byTool).up().serves(1, Serving) // what has waited is sent to it
		if s.pass(0).serves(1, Stopping); s.doing != "STSD" {
			t.Errorf("did %q", s.doing)
		}
		s.exit(143).serves(2, Starting).expect(Starting, 2).up().pass(time.Hour).serves(2, Serving)
	})
	t.Run("beside it", func(t *testing.T) {
		s := replaced(t, overlap).tell(Replayable{true}).up().serves(1, Serving)
		s.pass(0).did(newCode(2)).tell(SpareReady{2}).serves(2, Serving).pass(time.Hour).serves(2, Serving)
	})
	t.Run("it fails", func(t *testing.T) {
		s := replaced(t, byTool).exit(1).serves(2, Starting)
		if got := s.spawns[2]; got.Cause != Requested || got.Source != SourceTool {
			t.Errorf("started %+v", got)
		}
		s.up().pass(time.Hour).serves(2, Serving)
	})
	t.Run("nobody has asked it anything", func(t *testing.T) {
		begin(t, Options{}).tell(byTool).exit(143).pass(time.Second).tell(byTool).serves(1, Stopping)
	})
}

func TestStopAfterACrashPromisesNoRestart(t *testing.T) {
	s := begin(t, Options{}).up().tell(Exited{Code: 1}, Stop{ClientEOF}, TreeGone{}).expect(Stopped, 0)
	if got := s.last(); got.Cause != Shutdown {
		t.Errorf("reported %+v", got)
	}
}

// Who stops outlive does not wait for a backoff (GW-5).
func TestStopDuringABackoffEndsAtOnce(t *testing.T) {
	for _, profile := range []Profile{ClientEOF, Signal} {
		s := begin(t, preset(t, "exponential")).up().exit(1).expect(Backoff, 1)
		if wait := s.Deadline().Sub(s.now); wait < time.Second {
			t.Fatalf("it only waits %s", wait)
		}
		s.tell(Stop{profile}).expect(Stopped, 1)
		if s.doing != "SF" {
			t.Errorf("did %q", s.doing)
		}
	}
}

func TestStopForgetsTheWish(t *testing.T) {
	s := begin(t, Options{}).up().tell(byTool, byTool, Stop{Signal}).exit(143).expect(Stopped, 0)
	if s.doing != "SDTF" {
		t.Errorf("did %q", s.doing)
	}
}

func TestCrashLoopOpensTheBreakerAndOneTryClosesIt(t *testing.T) {
	s := begin(t, Options{})
	for range 10 {
		s.exit(3).pass(30 * time.Second)
	}
	s.expect(Starting, 10).exit(3).expect(Failed, 10)
	if got := s.last(); got.Delay != time.Minute || got.Cause != Crash {
		t.Fatalf("reported %+v", got)
	}
	if next := s.Snapshot().NextTry; !next.Equal(s.now.Add(time.Minute)) {
		t.Errorf("next try %s", next)
	}
	s.pass(time.Minute).expect(Starting, 11).exit(3).expect(Failed, 11)
	if got := s.last().Delay; got != 2*time.Minute {
		t.Errorf("second wait %s", got)
	}
	if s.pass(2*time.Minute).up().expect(Serving, 12); !s.last().Recovered {
		t.Error("not reported as recovered")
	}
	s.pass(20*time.Minute).exit(3).expect(Starting, 13)
	if s.up(); s.last().Recovered {
		t.Error("recovered twice")
	}
}

func TestRestartClosesTheBreaker(t *testing.T) {
	s := begin(t, Options{})
	for s.State() != Failed {
		s.exit(3).pass(30 * time.Second)
	}
	s.tell(Restart{Cause: Requested, Source: SourceMarker}, Restart{Cause: Replace}).expect(Failed, 10)
	s.tell(Restart{Cause: Requested, Source: SourceControl}).expect(Starting, 11).up()
	if !s.last().Recovered {
		t.Error("not reported as recovered")
	}
	s.exit(3).expect(Starting, 12)
}

func TestRestartDuringBackoffStartsAtOnceButOnceASecond(t *testing.T) {
	s := begin(t, preset(t, "tiered")).exit(1).expect(Backoff, 1).tell(byTool).expect(Starting, 1)
	s.exit(1).expect(Backoff, 2).tell(byTool).expect(Backoff, 2)
	if got := s.last(); !got.Throttled || got.Delay != time.Second || got.Source != SourceTool {
		t.Errorf("reported %+v", got)
	}
	s.tell(byTool).pass(time.Second).expect(Starting, 2)
}

func TestWrongSetUpIsNotTriedAgain(t *testing.T) {
	s := begin(t, rulesOf78()).exit(78).expect(Failed, 0).pass(24*time.Hour).expect(Failed, 0)
	if got := s.last(); got.Cause != Misconfigured || got.Delay != 0 || !s.Snapshot().NextTry.IsZero() {
		t.Errorf("reported %+v", got)
	}
	s.tell(byTool).expect(Starting, 1)
}

func TestSpawnFailureBacksOff(t *testing.T) {
	s := begin(t, preset(t, "exponential")).tell(SpawnFailed{}).expect(Backoff, 1)
	if got := s.last(); got.Cause != StartFail || got.Reason != "it could not be started" || got.Delay != time.Second || got.From != Starting {
		t.Errorf("reported %+v", got)
	}
}

// TestACommandThatCannotBeExecutedEndsItAll: but not once it has run, when somebody may just be saving it, nor behind a gateway.
func TestACommandThatCannotBeExecutedEndsItAll(t *testing.T) {
	s := begin(t, Options{}).tell(SpawnFailed{Status: 126}).expect(Stopped, 0)
	if s.doing != "SF" || !s.Snapshot().Over {
		t.Errorf("did %q", s.doing)
	}
	s = begin(t, Options{}).up().exit(1).tell(SpawnFailed{Gen: 1, Status: 126}).expect(Backoff, 2)
	if got := s.last().Cause; got != StartFail {
		t.Errorf("reported %s", got)
	}
	endless := Options{}
	endless.Exits.Endless = true
	begin(t, endless).tell(SpawnFailed{Status: 126}).expect(Backoff, 1).pass(respawnAfter).expect(Starting, 1)
}

func TestHandshakeTimeoutCountsAsACrash(t *testing.T) {
	s := begin(t, preset(t, "exponential")).pass(time.Hour).expect(Starting, 0)
	s.tell(Handshake{}).pass(30*time.Second).expect(Stopping, 0)
	if s.doing != "SIT" || s.last().Cause != StartFail {
		t.Errorf("did %q because of %s", s.doing, s.last().Cause)
	}
	s.exit(143).expect(Backoff, 1)
}

func TestSecondHandshakeIsTimedAnew(t *testing.T) {
	s := begin(t, Options{}).tell(Handshake{}).up().tell(Handshake{}).expect(Starting, 0)
	s.pass(29*time.Second).up().pass(time.Hour).expect(Serving, 0)
	if len(s.spawns) != 1 {
		t.Errorf("%d starts", len(s.spawns))
	}
}

func TestHealthyMinuteForgetsFailures(t *testing.T) {
	s := begin(t, Options{}).exit(1).exit(1).pass(time.Second).up()
	if s.pass(time.Minute); !s.Deadline().IsZero() {
		t.Error("still waiting for health")
	}
	s.exit(1).expect(Starting, 3) // at once
}

func TestExitRules(t *testing.T) {
	opts := Options{}
	opts.Exits.RestartOn = []int{75}
	s := begin(t, opts).up().exit(75).expect(Starting, 1)
	if s.spawns[1].Source != SourceExit {
		t.Errorf("spawned %+v", s.spawns[1])
	}
}

func TestRestartBeforeTheFirstStartStarts(t *testing.T) {
	m := New(Options{})
	m.Step(t0, 0, byTool)
	if m.State() != Starting || m.Restarts() != 0 || m.Generation() != 0 {
		t.Errorf("%s, generation %d, %d restarts", m.State(), m.Generation(), m.Restarts())
	}
}

func TestALaterSofterStopDoesNotSlowDown(t *testing.T) {
	s := begin(t, Options{}).up().tell(Stop{Signal}).pass(550*time.Millisecond).tell(Stop{ClientEOF}, Stop{Signal})
	if s.pass(50 * time.Millisecond); s.doing != "STK" {
		t.Errorf("did %q", s.doing)
	}
}

func TestHandshakeInterruptsHealth(t *testing.T) {
	s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).up().pass(50 * time.Second).tell(Handshake{1})
	s.pass(20 * time.Second).exit(1)
	if got := s.last().Delay; got != 2*time.Second {
		t.Errorf("waits %s: it was not ready for a minute", got)
	}
}

func TestAReplacementFulfilsAWish(t *testing.T) {
	s := begin(t, Options{}).up().tell(Restart{Cause: Replace}, byTool).exit(143).expect(Starting, 0)
	s.up().pass(time.Hour).expect(Serving, 0)
}

func TestAPersonsRestartForgetsFailuresAServersOwnDoesNot(t *testing.T) {
	for source, want := range map[Source]time.Duration{
		SourceTool: time.Second, SourceSignal: time.Second, SourceControl: time.Second, SourceWatch: time.Second, SourceMonitor: time.Second,
		SourceMarker: 4 * time.Second,
	} {
		s := begin(t, preset(t, "exponential")).exit(1).pass(time.Second).exit(1).pass(2 * time.Second).up()
		s.tell(Restart{Cause: Requested, Source: source}).exit(143).expect(Starting, 3).exit(1)
		if got := s.last().Delay; got != want {
			t.Errorf("%s: the next crash waits %s, want %s", source, got, want)
		}
	}
}

// A program that cannot be started at all is not tried again within the same instant, also without any delay.
func TestNoStartAtOnceAfterAFailedSpawn(t *testing.T) {
	policy := backoff.Policy{Tiers: []backoff.Tier{{Delay: 0}}}
	s := begin(t, Options{Backoff: policy})
	for n := range 4 {
		s.tell(SpawnFailed{Gen: s.Generation()}).expect(Backoff, n+1).pass(respawnAfter).expect(Starting, n+1)
	}
}

// A person reads since when it does not work: the tries in between are none of that.
func TestAFailedTryDoesNotSetAnewSinceWhenItIsDown(t *testing.T) {
	s := begin(t, preset(t, "tiered"))
	never := s.Snapshot().Stands
	for range 5 {
		s.exit(3)
		s.pass(6 * time.Second)
	}
	if got := s.Snapshot().Stands; !got.Equal(never) || got.IsZero() {
		t.Errorf("it is down since %s, and never worked since %s", got, never)
	}
	s.up()
	mended := s.now
	s.pass(time.Hour)
	if got := s.Snapshot().Stands; !got.Equal(mended) {
		t.Errorf("it works since %s, want %s", got, mended)
	}
	fell := s.now
	s.exit(3)
	s.pass(6 * time.Second)
	s.exit(3)
	if got := s.Snapshot().Stands; !got.Equal(fell) {
		t.Errorf("it is down since %s, want %s", got, fell)
	}
}
