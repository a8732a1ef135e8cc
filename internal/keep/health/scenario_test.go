package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The longest times to a verdict at the default settings, from when no call is waiting any more. An idle server is
// looked at once a minute at least.
const (
	boundIdle    = slowest + 25*time.Second + 2*time.Second
	boundStopped = slowest + stopLooks*stopEvery + time.Second
	boundFull    = slowest + 4*time.Minute
	boundSome    = slowest + 19*time.Minute
)

const well = 10 * time.Minute // how long the sick ones were well before

func at(d time.Duration, do func(*sim)) step { return step{d, do} }

// retries is a client that gives up after a minute, thinks, and tries again.
func retries(from time.Duration, n int) []step {
	var s []step
	for i := range n {
		s = append(s, at(from+time.Duration(i)*75*time.Second, calls(time.Minute, false, 0)))
	}
	return s
}

func TestSickServersAreCondemned(t *testing.T) {
	for _, tc := range []struct {
		name   string
		opts   Options
		habits habits
		script []step
		sick   time.Duration // since when
		bound  time.Duration
		says   []string
	}{
		{"reads and never answers again", Options{}, habits{}, []step{
			at(well, func(s *sim) { s.ignoresPing, s.ignoresLists = true, true }),
		}, well, boundIdle, []string{"2 rounds of probes", "it uses no CPU time", "no message for"}},
		{"answered each probe only after its round, and never answers again", Options{}, habits{delay: 11 * time.Second}, []step{
			at(0, becomes(manner{'R', 0.3, false})),
			at(101500*time.Millisecond, func(s *sim) { s.manner, s.ignoresPing, s.ignoresLists, s.replies = asleep, true, true, nil }),
		}, 101500 * time.Millisecond, boundIdle + 3*slowest, []string{"4 rounds of probes", "it uses no CPU time"}},
		{"does not read its stdin", Options{}, habits{}, []step{at(well, becomes(blocked))},
			well, boundIdle, []string{"48 bytes of its stdin stay unread", "no CPU time"}},
		{"did not read its stdin from the beginning", Options{}, habits{}, []step{at(0, becomes(blocked))},
			0, 45 * time.Second, []string{"unread"}},
		{"spins", Options{}, habits{}, []step{at(well, becomes(spinning))},
			well, boundFull, []string{"6 rounds", "100 % of a core"}},
		{"spins and reads", Options{}, habits{}, []step{at(well, func(s *sim) {
			s.manner, s.ignoresPing, s.ignoresLists = manner{state: 'R', cpu: 0.97}, true, true
		})}, well, boundFull, []string{"97 % of a core"}},
		{"does not read, but is busy with something", Options{}, habits{}, []step{at(well, becomes(manner{'S', 0.3, true}))},
			well, boundSome, []string{"20 rounds", "unread", "30 % of a core"}},
		{"stopped and does not go on", Options{}, habits{noSIGCONT: true}, []step{at(well, becomes(stopped))},
			well, boundStopped, []string{"state T", "5 times SIGCONT in 10s"}},
		{"hung in a call that the client gives up", Options{}, habits{}, []step{
			at(well, calls(time.Minute, false, 0)), at(well, becomes(blocked)),
		}, well + time.Minute, 15*time.Second + afterwork + boundIdle - slowest, []string{"stdin"}},
		{"hung in calls that the client makes again and again", Options{}, habits{},
			append([]step{at(well, becomes(blocked))}, retries(well, 100)...), well, 6 * time.Minute, []string{"stdin"}},
		{"hung in a call over its timeout", Options{CallTimeout: 30 * time.Second}, habits{}, []step{
			at(well, calls(time.Hour, false, 0)), at(well, becomes(blocked)),
		}, well + 30*time.Second, 30 * time.Second, []string{"stdin"}},
		{"stopped in a call over its timeout", Options{CallTimeout: 30 * time.Second}, habits{noSIGCONT: true}, []step{
			at(well, calls(time.Hour, false, 0)), at(well, becomes(stopped)),
		}, well, time.Minute + stopLooks*stopEvery, []string{"state T"}},
		{"no ping, then silent", Options{}, habits{ignoresPing: true}, []step{at(well, func(s *sim) { s.ignoresLists = true })},
			well, boundIdle, []string{"2 rounds"}},
		{"blocked, and the machine sleeps", Options{}, habits{}, []step{
			at(well, becomes(blocked)), at(well+20*time.Second, suspend(8*time.Hour)),
		}, well + 20*time.Second, boundIdle, []string{"unread"}},
		{"no longer seen by a debugger", Options{}, habits{}, []step{at(well, becomes(debugged)), at(5*time.Hour, becomes(blocked))},
			5 * time.Hour, boundIdle, []string{"unread"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := simulate(t, tc.opts, tc.habits, tc.script...).run(tc.sick + 2*tc.bound)
			after := s.verdictAt - tc.sick
			if s.verdict == "" || after < 0 || after > tc.bound {
				t.Fatalf("verdict %q after %s, want one within %s", s.verdict, after, tc.bound)
			}
			t.Logf("after %s: %s", after, s.verdict)
			for _, want := range tc.says {
				if !strings.Contains(s.verdict, want) {
					t.Errorf("%q does not say %q", s.verdict, want)
				}
			}
			if !s.Deadline().IsZero() || s.Tick(s.now, View{}) != nil || s.ProbeAnswered(s.now, Ping) != nil {
				t.Error("goes on after the verdict")
			}
		})
	}
}

// seen is what a user, or the owner, notices of a day with a healthy server.
type seen struct {
	Pings, Lists, Continues, Overdue, Suspects, Cleared int
	NoPing                                              bool
}

func (s *sim) seen() seen {
	pings := len(s.sends) - len(slices.DeleteFunc(slices.Clone(s.sends), func(p Probe) bool { return p == Ping }))
	return seen{pings, len(s.sends) - pings, s.conts, s.overdue, s.suspects, s.cleared, s.NoPing()}
}

func TestHealthyServersLive(t *testing.T) {
	const hour = time.Hour
	for _, tc := range []struct {
		name   string
		opts   Options
		habits habits
		script []step
		end    time.Duration
		want   seen
	}{
		// 15 s, then 30 more, then each minute.
		{"idle", Options{}, habits{}, nil, hour, seen{Pings: 61}},
		{"off", Options{Off: true}, habits{}, []step{at(0, becomes(stopped))}, hour, seen{}},
		{"off, a call over its timeout", Options{Off: true, CallTimeout: 30 * time.Second}, habits{}, []step{
			at(10*time.Second, calls(hour, false, 0)), at(10*time.Second, becomes(stopped)),
		}, 40*time.Second + time.Second, seen{Overdue: 1}},
		{"off, a call in a debugger", Options{Off: true, CallTimeout: 30 * time.Second}, habits{}, []step{
			at(10*time.Second, calls(hour, true, 0)), at(10*time.Second, becomes(debugged)),
		}, hour, seen{}},
		{"writes to stderr each 10 s", Options{}, habits{noise: 10 * time.Second}, nil, hour, seen{}},
		{"no ping", Options{}, habits{ignoresPing: true}, nil, 10 * time.Minute, seen{Pings: 1, Lists: 11, NoPing: true}},
		{"its era has no ping", Options{NoPing: true}, habits{ignoresPing: true}, nil, 10 * time.Minute, seen{Lists: 11, NoPing: true}},
		{"never answers any probe", Options{}, habits{ignoresPing: true, ignoresLists: true}, nil, 10 * time.Minute, seen{Pings: 12, Lists: 11}},
		{"answers ping after 7 s", Options{}, habits{delay: 7 * time.Second}, nil, 5 * time.Minute, seen{Pings: 4, Lists: 4}},
		{"a call of two hours", Options{}, habits{}, []step{
			at(0, calls(2*hour, true, 0)), at(0, becomes(blocked)), at(2*hour, becomes(asleep)),
		}, 2 * hour, seen{}},
		{"a call over its timeout, but with progress", Options{CallTimeout: 30 * time.Second}, habits{}, []step{
			at(0, calls(2*hour, true, 20*time.Second)),
		}, 2 * hour, seen{}},
		{"one call has no progress, another has", Options{CallTimeout: 30 * time.Second}, habits{}, []step{
			at(0, calls(2*hour, true, 20*time.Second)), at(0, calls(hour, false, 0)),
		}, 2 * hour, seen{Overdue: 1}},
		{"a call over its timeout, server well", Options{CallTimeout: 30 * time.Second}, habits{}, []step{
			at(0, calls(hour, false, 0)),
		}, 40 * time.Second, seen{Pings: 1, Overdue: 1}},
		{"goes on with what the client gave up", Options{}, habits{}, []step{
			at(0, calls(time.Minute, false, 0)), at(0, becomes(blocked)), at(2*time.Minute+10*time.Second, becomes(asleep)),
		}, 2*time.Minute + 20*time.Second, seen{Pings: 1}},
		{"suspend of 8 h while it is asked", Options{}, habits{delay: 12 * time.Second}, []step{
			at(16*time.Second, suspend(8*hour)),
		}, 28 * time.Second, seen{Pings: 1, Lists: 1}},
		{"outlive stopped for a minute while it is asked", Options{}, habits{delay: 8 * time.Second}, []step{
			at(16*time.Second, freeze(time.Minute)),
		}, 80 * time.Second, seen{Pings: 1}},
		{"stopped once", Options{}, habits{}, []step{at(5*time.Minute, becomes(stopped))}, 6 * time.Minute, seen{Pings: 6, Continues: 1}},
		{"stopped in a call", Options{}, habits{}, []step{
			at(10*time.Second, calls(hour, true, 0)), at(10*time.Second, becomes(stopped)),
		}, 30 * time.Second, seen{Continues: 1}},
		{"in a debugger for a day", Options{CallTimeout: time.Minute}, habits{}, []step{
			at(time.Second, calls(24*hour, true, 0)), at(2*time.Second, becomes(debugged)),
		}, 24 * hour, seen{}},
		{"waits for a disk for an hour", Options{}, habits{}, []step{
			at(0, becomes(manner{'D', 0, true})), at(hour, becomes(asleep)),
		}, 2 * hour, seen{Pings: 61}},
		{"is not let run for an hour", Options{}, habits{}, []step{
			at(0, becomes(manner{'R', 0, true})), at(hour, becomes(asleep)),
		}, 2 * hour, seen{Pings: 61}},
		{"slow on a loaded machine", Options{}, habits{delay: 40 * time.Second}, []step{
			at(0, becomes(manner{state: 'R', cpu: 0.2})),
		}, hour, seen{Pings: 60, Lists: 60}},
		{"builds an index for three minutes", Options{}, habits{}, []step{
			at(hour, becomes(spinning)), at(hour+3*time.Minute, becomes(asleep)),
		}, 2 * hour, seen{Pings: 119, Suspects: 1, Cleared: 1}},
		{"is busy twice for three minutes, and reads a ping in between that it does not know any more", Options{}, habits{}, []step{
			at(20*time.Second, func(s *sim) { s.manner, s.ignoresPing = spinning, true }), at(200*time.Second, becomes(asleep)),
			at(204*time.Second, becomes(spinning)), at(384*time.Second, becomes(asleep)),
		}, 8 * time.Minute, seen{Pings: 4, Lists: 2, Suspects: 1, Cleared: 1, NoPing: true}},
		{"works on four cores for an hour", Options{}, habits{}, []step{
			at(hour, func(s *sim) { s.manner, s.ignoresPing, s.ignoresLists = manner{state: 'S', cpu: 4}, true, true }),
			at(2*hour, func(s *sim) { s.manner, s.ignoresPing, s.ignoresLists = asleep, false, false }),
		}, 3 * hour, seen{Pings: 182, Lists: 61}},
		{"the client does not take its output", Options{}, habits{}, []step{
			at(time.Minute, becomes(blocked)), at(time.Minute, hold(true)),
			at(hour, hold(false)), at(hour, becomes(asleep)),
		}, 2 * hour, seen{Pings: 63}},
		// Probes that are answered after a second go out at 15 s, 46 s and 107 s.
		{"outlive stopped, and reads the answer after its timer", Options{}, habits{delay: time.Second}, []step{
			at(107500*time.Millisecond, func(s *sim) { s.tickFirst = true; freeze(time.Minute)(s) }),
		}, 3 * time.Minute, seen{Pings: 3}},
		{"outlive stopped while a call is in flight", Options{CallTimeout: 30 * time.Second}, habits{}, []step{
			at(10*time.Second, calls(90*time.Second, true, 0)), at(20*time.Second, freeze(time.Minute)),
		}, 2 * time.Minute, seen{Pings: 1}},
		{"a call comes while it is asked", Options{}, habits{delay: time.Second}, []step{
			at(106*time.Second, becomes(blocked)), at(107500*time.Millisecond, calls(14*time.Second, false, 0)),
			at(124*time.Second, becomes(asleep)),
		}, 130 * time.Second, seen{Pings: 3}},
		{"deaf for a while before and after a suspend", Options{}, habits{delay: time.Second}, []step{
			at(106*time.Second, becomes(blocked)), at(118*time.Second, suspend(8*hour)), at(150*time.Second, becomes(asleep)),
		}, 160 * time.Second, seen{Pings: 3, Suspects: 1, Cleared: 1}},
		{"no longer answers probes, but writes to stderr", Options{}, habits{noise: 20 * time.Second}, []step{
			at(well, func(s *sim) { s.ignoresPing, s.ignoresLists = true, true }),
		}, hour, seen{Pings: 165}},
		{"goes on twice with what the client gave up", Options{}, habits{}, []step{
			at(time.Second, calls(10*time.Second, false, 0)),
			at(well, calls(10*time.Second, false, 0)), at(well, becomes(blocked)), at(well+70*time.Second, becomes(asleep)),
		}, well + 80*time.Second, seen{Pings: 11}},
		{"a short timeout, after long idleness", Options{CallTimeout: 5 * time.Second}, habits{}, []step{
			at(well, calls(hour, false, 0)),
		}, well + 6*time.Second, seen{Pings: 12, Overdue: 1}},
		{"nothing can be learned of the process", Options{}, habits{unknown: true}, []step{
			at(well, becomes(blocked)), at(hour, becomes(asleep)),
		}, 2 * hour, seen{Pings: 122, Lists: 51}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := simulate(t, tc.opts, tc.habits, tc.script...).run(tc.end)
			if s.verdict != "" {
				t.Fatalf("condemned after %s: %s", s.verdictAt, s.verdict)
			}
			got := s.seen()
			t.Logf("%d looks, %+v", s.ticks, got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A decreasing sum, from which a descendant's share was lost, is no evidence; a decreasing backlog is.
func TestEvidence(t *testing.T) {
	e := gather(Look{CPU: time.Hour, Known: true})
	e.use(Look{CPU: time.Hour, Known: true}, Look{CPU: time.Minute, Known: true}, 10*time.Second)
	if e.flat() || e.full() {
		t.Errorf("flat %v, full %v, of %s", e.flat(), e.full(), e.cpu)
	}
	e = gather(Look{Known: true, Unread: 4096})
	e.see(Look{Known: true, Unread: 1024})
	if !e.excused() || e.blocked {
		t.Errorf("it reads its stdin: excused %v, blocked %v", e.excused(), e.blocked)
	}
}
