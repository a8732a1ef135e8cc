package process

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// leaderless is the kind of an actor whose first thread ends at once, and whose others live on.
const leaderless = "leaderless"

func isLeaderless() bool {
	return slices.Contains(strings.Fields(os.Getenv(agenttest.Role)), leaderless)
}

func init() {
	if isLeaderless() {
		runtime.LockOSThread() // only in an init is the main goroutine certain to be on the first thread
	}
}

// actWithoutLeader lets the actor go on in another thread, and ends this one alone.
func actWithoutLeader(kinds []string) {
	go func() { os.Exit(agenttest.Act(kinds)) }()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// A process lives as long as one of its threads, although its leader is a zombie: nothing may be started in its place.
func TestAProcessEndsWithItsLastThread(t *testing.T) {
	t.Parallel()
	pid := agenttest.Start(t, "agent "+leaderless, "")[0]
	await.Until(t, "its leader has ended", func() bool {
		s, err := readStat(pid)
		return err == nil && s.state == 'Z'
	})
	id := identityOf(pid)
	if id == (Identity{}) {
		t.Fatal("a thread of it lives, and it is called dead")
	}
	if !slices.ContainsFunc(System{}.All(), func(e Process) bool { return e.Identity == id }) {
		t.Error("the table does not have it")
	}
	if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{id}}); err != nil {
		t.Fatal(err)
	}
	if s, err := readStat(pid); err == nil && s.start == id.Start && !s.dead() {
		t.Errorf("ended, and there are still %d threads", s.threads)
	}
}

func TestParseStatOfAZombie(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state, threads string
		dead           bool
	}{{"S", "1", false}, {"S", "9", false}, {"Z", "1", true}, {"Z", "0", true}, {"Z", "2", false}, {"X", "2", true}} {
		s, ok := parseStat("7 (a) " + tc.state + " 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 " + tc.threads + " 0 2678167 31 381")
		if !ok || s.dead() != tc.dead {
			t.Errorf("state %s with %s threads: dead %v, want %v", tc.state, tc.threads, s.dead(), tc.dead)
		}
	}
}
