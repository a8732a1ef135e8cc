package terminal

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func scene() overview.State {
	return overview.State{
		At: noon, Wrong: 3, Waiting: 1, Trouble: []string{"agents: their home was last seen at 11:59:00"},
		Incidents: []overview.Incident{
			{ID: "i1", Title: "shop has crashed", Details: "PID 7 is dead.", Opened: ago(30 * time.Second), Began: ago(time.Minute), State: "notified", Told: "told: me", ToDo: "start it", Agent: "shop"},
			{ID: "i2", Title: "blog hangs", Opened: ago(3 * time.Hour), Resolved: ago(2 * time.Hour), Ending: "it works again"},
			{ID: "i3", Title: "news waits", Opened: ago(time.Hour), State: "acknowledged", By: "me", Until: noon.Add(time.Hour)},
		},
		Servers: []overview.Server{
			{Key: "works@1", Name: "works", State: "ready", Health: overview.Good, Since: ago(time.Hour), Restarts: 1, Clients: []string{"claude-code"}, Strip: []overview.Span{{From: ago(overview.Day), To: noon, Health: overview.Good}},
				Renewals: []overview.Renewal{{At: ago(time.Hour), Cause: "crash", Done: true, Took: 80 * time.Millisecond}}},
			{Key: "broken@2", Name: "broken", State: "backoff", Health: overview.Warn, Since: ago(time.Minute), Why: "exit status 3\nno \x1b[31mkey", Next: noon.Add(5 * time.Second)},
			{Key: "mute@3", Name: "mute", State: "no answer", Health: overview.Bad, Since: ago(time.Minute), Why: "outlive runs, and does not answer"},
			{Key: "gate@4", Name: "gate", Gateway: true, State: "running", Health: overview.Good, Since: ago(time.Hour), URL: "http://x"},
		},
		Agents: []overview.Agent{{Key: "shop", Name: "shop", State: "has crashed", Health: overview.Bad, Since: ago(time.Minute), Why: "PID 7 is dead",
			Aspects: []overview.Aspect{{Name: "done", Text: "restarted once, told: me"}, {Name: "to do", Text: "start it again"}, {Name: "next", Text: "outlive agent start shop"}}}},
	}
}

func TestEverythingInSentences(t *testing.T) {
	want := []string{
		"3 wrong, 1 waits for you; 3 servers, 1 agent",
		"Not seen: agents: their home was last seen at 11:59:00",
		"Not seen: no monitor runs: nothing is done, nobody is told. Start: outlive monitor",
		"Incident shop has crashed, waits for you; since 11:59:00; PID 7 is dead; outlive: restarted once, told: me; to do: start it.",
		"Incident blog hangs, over; from 09:00:00 to 10:00:00; it works again.",
		"Incident news waits, acknowledged; since 11:00:00; acknowledged by me until 13:00:00.",
		"Server works@1: ready; since 11:00:00; up for 24 h; outlive has restarted it 1 ×, last at 11:00:00 (crash, took 80 ms); client: claude-code.",
		`Server broken@2: is down (trouble); since 11:59:00; exit status 3 / no \x1b[31mkey; outlive starts it again at 12:00:05.`,
		"Server mute@3: no answer (broken); last heard of at 11:59:00; outlive runs, and does not answer.",
		"Gateway gate@4: running; since 11:00:00; at http://x.",
		"Agent shop: has crashed (broken); since 11:59:00; PID 7 is dead; outlive: restarted once, told: me; to do: start it again; next: outlive agent start shop.",
	}
	if d := cmp.Diff(want, Lines(scene())); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}
