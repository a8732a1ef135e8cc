package backend

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// The status names every call that waits, since when, and when the server last moved it.
func TestStatusNamesTheCalls(t *testing.T) {
	r := newRestartable(t)
	begun := r.now
	r.client(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"pay","arguments":{},"_meta":{"progressToken":"t"}}}`)
	r.tick(10 * time.Second)
	r.client(`{"jsonrpc":"2.0","id":"b","method":"prompts/list"}`)
	r.server(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`)
	moved := r.now
	r.tick(10 * time.Second)
	s := r.b.Status(r.now)
	if len(s.Unanswered) != 2 || s.Trouble != "" {
		t.Fatalf("%+v, %q: want two calls and no trouble", s.Unanswered, s.Trouble)
	}
	pay, list := s.Unanswered[0], s.Unanswered[1]
	if pay.Method != "tools/call" || pay.Tool != "pay" || !pay.Since.Equal(begun) || pay.MovedAt == nil || !pay.MovedAt.Equal(moved) {
		t.Errorf("the call: %+v, came at %s and moved at %s", pay, begun, moved)
	}
	if list.Method != "prompts/list" || list.Tool != "" || !list.Since.Equal(moved) || !list.MovedAt.Equal(moved) {
		t.Errorf("the list: %+v, came at %s", list, moved)
	}
	r.server(`{"jsonrpc":"2.0","id":"a","result":{"content":[]}}`)
	if s := r.b.Status(r.now); len(s.Unanswered) != 1 || s.Unanswered[0].Method != "prompts/list" {
		t.Errorf("after its answer: %+v", s.Unanswered)
	}
}

// A restart because of a call that does not go on gives the old process seconds, any other one its whole time.
func TestStalledCallIsAnsweredSoonAfterTheMonitorsRestart(t *testing.T) {
	for source, want := range map[supervise.Source]time.Duration{supervise.SourceMonitor: 10 * time.Second, supervise.SourceControl: 11 * time.Minute} {
		t.Run(source.String(), func(t *testing.T) {
			r := newRestartable(t)
			r.client(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"pay","arguments":{}}}`)
			asked := r.now
			r.b.Restart(r.now, source, "it is stuck")
			old := r.gen - 1
			r.comesUp()
			r.takeActs()
			for !strings.Contains(strings.Join(r.acts, " "), "@0 kill") {
				if r.now.Sub(asked) > want {
					t.Fatalf("process %d was not ended within %s: %v", old, want, r.acts)
				}
				r.tick(time.Second)
			}
			if got := r.now.Sub(asked); got < want/10 {
				t.Errorf("process %d was ended after %s already", old, got)
			}
			if s := r.b.Status(r.now); len(s.Beside) != 1 || s.Beside[0].InFlight != 1 {
				t.Errorf("beside: %+v", s.Beside)
			}
			e := Exit{Code: 137, Signalled: true, Signal: "killed"}
			r.b.ServerExited(r.now, old, e)
			r.b.ServerClosed(r.now, old)
			if got := strings.Join(r.takeClient(), "\n"); strings.Count(got, `"id":"a"`) != 1 {
				t.Errorf("the call was answered %q", got)
			}
		})
	}
}

// A planned restart that came to nothing is told of until a newer process serves.
func TestStatusTellsOfAFailedRestartUntilANewerProcessServes(t *testing.T) {
	r := newRestartable(t)
	r.b.Restart(r.now, supervise.SourceControl, "new code")
	r.exit(1)
	if s := r.b.Status(r.now); s.ReloadFailed == nil || s.Generation != 0 {
		t.Fatalf("process %d serves, and of the restart is told %+v", s.Generation, s.ReloadFailed)
	}
	r.gen = 0
	r.exit(1)
	r.tick(10 * time.Second)
	if s := r.b.Status(r.now); s.ReloadFailed == nil {
		t.Error("it is forgotten before another process serves")
	}
	r.comesUp()
	if s := r.b.Status(r.now); s.ReloadFailed != nil || s.State != "ready" {
		t.Errorf("the server is %s, and of the restart is told %+v", s.State, s.ReloadFailed)
	}
}

// What keeps a server from working is one word.
func TestStatusSaysWhyAServerDoesNotWork(t *testing.T) {
	t.Run("login", func(t *testing.T) {
		r := newRestartable(t)
		r.vitals.Login = "the server wants a login: run outlive login https://shop"
		if s := r.b.Status(r.now); s.Trouble != WantsLogin || s.Login != r.vitals.Login || s.Failing != r.vitals.Login {
			t.Errorf("%q, %q, %q", s.Trouble, s.Login, s.Failing)
		}
	})
	t.Run("paused", func(t *testing.T) {
		r := newRestartable(t)
		for range 40 {
			if s := r.b.Status(r.now); s.Trouble == Paused {
				if s.NextTryAt == nil {
					t.Error("it does not say when it is tried again")
				}
				return
			}
			if r.b.Status(r.now).ServerPID != 0 {
				r.exit(1)
			}
			r.tick(time.Minute / 2)
		}
		t.Errorf("it crashes on and on, and its state is %+v", r.b.Status(r.now))
	})
}
