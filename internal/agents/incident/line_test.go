package incident

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// A request for a permission is a line of a list in each of its states, its input in full as long as it waits.
func TestLines(t *testing.T) {
	p := Policy{Tiers: [][]string{{"me"}}, Home: " --home /srv/agents"}
	input := strings.Repeat("make all; ", 60) + "make"
	f := Facts{Name: "shop", Severity: Critical, Since: t0, Details: "Bash wants to run", Request: "r1", Input: input}
	key := Key{Agent: "shop", Class: "waiting_permission"}
	sent := func(effects []Effect) (list []notify.Line) {
		for _, e := range effects {
			if e, ok := e.(Send); ok {
				list = append(list, e.Message.Line)
			}
		}
		return list
	}
	want := notify.Line{
		Kind: "permission", Mark: "🔴", Title: "agents wait for a permission", Text: "shop: " + input, Note: "Each in full (outlive agent list --home /srv/agents)",
		Buttons: []notify.Button{
			{Label: "Allow shop", Callback: notify.Callback{Incident: "ab12cd34", Verb: "allow", Nonce: "n1"}, NeedsExact: true},
			{Label: "Deny shop", Callback: notify.Callback{Incident: "ab12cd34", Verb: "deny", Nonce: "n1"}},
		},
	}
	i, effects := Step(New("ab12cd34", key), Opened{f, "n1"}, p, t0)
	if d := cmp.Diff([]notify.Line{want}, sent(effects)); d != "" {
		t.Error("opened", d)
	}
	i, _ = Step(i, Sent{"me"}, p, t0)
	again := want
	again.Kind = "permission again"
	_, effects = Step(i, Timer{}, p, i.Next(p, t0))
	if d := cmp.Diff([]notify.Line{again}, sent(effects)); d != "" {
		t.Error("reminder", d)
	}

	allowed, _ := Step(i, Pressed{Verb: Allow, Nonce: "n1", By: "@ann"}, p, t0.Add(time.Minute))
	if l := Compose(allowed, p, t0.Add(time.Minute)).Line; !l.Over || strings.Contains(l.Text, "make") || !strings.Contains(l.Text, "allow by @ann") {
		t.Errorf("allowed: %+v", l)
	}
	acked, _ := Step(i, Pressed{Verb: Ack, By: "@ann"}, p, t0.Add(time.Minute))
	if l := Compose(acked, p, t0.Add(time.Minute)).Line; l.Over || !strings.HasSuffix(l.Text, input) || !strings.Contains(l.Text, "acknowledged by @ann") {
		t.Errorf("acknowledged: %+v", l)
	}
	over, effects := Step(i, Recovered{"at its terminal"}, p, t0.Add(time.Minute))
	if l := Compose(over, p, t0.Add(time.Minute)).Line; !l.Over || l.Kind != want.Kind || strings.Contains(l.Text, "make") {
		t.Errorf("over: %+v", l)
	}
	if l := sent(effects); len(l) != 1 || l[0].Over || l[0].Kind != "permission over" || l[0].Mark != "🟢" || l[0].Title != "agents work again" {
		t.Errorf("its end: %+v", l)
	}

	p.PIV = true
	if l := Compose(i, p, t0).Line; !reflect.DeepEqual(l, notify.Line{}) {
		t.Errorf("PIV's is %+v", l)
	}
	p.PIV = false
	i.Key.Class = "crashed"
	if l := Compose(i, p, t0).Line; !reflect.DeepEqual(l, notify.Line{}) {
		t.Errorf("a crash is %+v", l)
	}
}

// A name is quoted where a shell would take it apart, and a server is named as commands take it.
func TestNamesInCommands(t *testing.T) {
	for agent, want := range map[string]string{
		"server:gateway/linear:":    "(outlive logs gateway/linear), then restart it (outlive restart gateway/linear)",
		"server:till@4712:shop":     "(outlive logs till@4712), then restart it (outlive restart till@4712)",
		"server:my till's@4712:":    `(outlive logs 'my till'\''s@4712'), then restart it (outlive restart 'my till'\''s@4712')`,
		"server:gateway/a b:shop-1": "(outlive logs 'gateway/a b'), then restart it (outlive restart 'gateway/a b')",
	} {
		i := Incident{Key: Key{Agent: agent, Class: "server_failed"}}
		if got := i.todo(Policy{Home: " --home /srv"}); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q", agent, got)
		}
	}
	i := Incident{Key: Key{Agent: "shop", Class: "crashed"}}
	if got := i.todo(Policy{Home: " --home /srv"}); !strings.Contains(got, "(outlive agent logs shop --home /srv)") {
		t.Errorf("shop: %q", got)
	}
}
