package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// chat is a world's channel that takes only so many messages.
type chat struct{ *world }

func (chat) Pace() notify.Pace { return notify.Pace{Gap: time.Millisecond} }

// Agents that ask for a permission at the same moment are told of in one message, below which each is answered by itself.
func TestPermissionsAskedTogether(t *testing.T) {
	t.Parallel()
	w := attended(t)
	w.opts.Channels = map[string]notify.Channel{"telegram": chat{w}}
	names := []string{"cart", "docs", "shop"}
	var agents []string
	for _, name := range names {
		agents = append(agents, w.agent(name, "kind: claude\n"+starts))
	}
	w.declare("", agents...)
	replies := map[string]<-chan string{}
	for n, name := range names {
		c := w.claude(name, 1001+n)
		c.prompt()
		c.tool("Bash", `"command":"make `+name+`"`)
		replies[name] = c.asks("make " + name)
		await.Until(t, "all ask", func() bool { open, _ := hooks.Requests(hooks.Dir(w.home)); return len(open) == n+1 })
	}
	w.cycle()
	w.spends(10*time.Second, 5*time.Second)
	if len(w.said) != 1 || !strings.HasPrefix(w.said[0], "🔴 3 agents wait for a permission\n") {
		t.Fatalf("said %q", w.said)
	}
	for _, name := range names {
		if !strings.Contains(w.said[0], "\n• "+name+": ") || !strings.Contains(w.said[0], "make "+name) {
			t.Errorf("%s is not in %q", name, w.said[0])
		}
	}
	if got := w.press(0, "Allow docs"); got != "Allowed" {
		t.Errorf("answered %q", got)
	}
	w.cycle()
	select {
	case got := <-replies["docs"]:
		if !strings.Contains(got, `"behavior":"allow"`) {
			t.Errorf("the hook says %q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the hook was not answered")
	}
	labels := fmt.Sprint(w.shown[0].Buttons)
	if now := w.shown[0].Text.Body; !strings.HasPrefix(now, "🔴 2 of 3 agents wait for a permission\n") || strings.Contains(labels, "docs") || !strings.Contains(labels, "Allow cart") || !strings.Contains(labels, "Deny shop") {
		t.Errorf("then it shows %q, with %s", now, labels)
	}
	if len(w.said) != 1 {
		t.Errorf("said %q", w.said)
	}
}
