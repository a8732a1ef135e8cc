package agentcli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A call that runs a subagent is not written before it has ended. The subagent's own file shows that the session works,
// and never more than that.
func TestGeminiSubagents(t *testing.T) {
	t.Parallel()
	const (
		ended     = `{"id":"2","timestamp":%q,"type":"gemini","content":"I will ask a subagent. Shall I?"}`
		cancelled = `{"id":"9","timestamp":%q,"type":"info","content":"Request cancelled."}`
		failed    = `{"id":"9","timestamp":%q,"type":"error","content":"[API Error: Overloaded]"}`
		theirs    = `{"sessionId":"sub","kind":"subagent"}` + "\n" + `{"id":"1","type":"error","content":"[API Error: An unknown error occurred.]"}` + "\n"
	)
	for name, test := range map[string]struct {
		id, last string
		wrote    time.Duration // after the session's last record
		want     string
		status   Status
	}{
		"it works":               {"g1", ended, time.Minute, "tool a subagent()", Busy},
		"it is over":             {"g1", ended, -time.Minute, "ended asking", Idle},
		"a person cancels":       {"g1", cancelled, time.Second, "ended interrupted", Idle},
		"an error ends it":       {"g1", failed, time.Second, "ended [api 0 try 0/0]", Idle},
		"a name leads elsewhere": {"../g1", ended, time.Minute, "ended asking", Idle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			shop, at := w.dir("shop"), time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
			writeFile(t, filepath.Join(w.options.Places[Gemini], "projects.json"), fmt.Sprintf(`{"projects":{%q:"slug"}}`, shop))
			chats := filepath.Join(w.options.Places[Gemini], "tmp", "slug", "chats")
			writeFile(t, filepath.Join(chats, "session-1.jsonl"), fmt.Sprintf(`{"sessionId":%q,"kind":"main"}`+"\n"+`{"id":"1","timestamp":%q,"type":"user","content":"go"}`+"\n"+test.last+"\n",
				test.id, at.Add(-time.Minute).Format(time.RFC3339), at.Format(time.RFC3339)))
			sub, wrote := filepath.Join(chats, filepath.FromSlash(test.id), "a1.jsonl"), at.Add(test.wrote)
			writeFile(t, sub, theirs)
			if err := os.Chtimes(sub, wrote, wrote); err != nil {
				t.Fatal(err)
			}
			sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}})
			if err != nil || len(sessions) != 1 {
				t.Fatalf("%d sessions: %v", len(sessions), err)
			}
			s := sessions[0]
			if got := reading(s.Turn); got != test.want || s.Status != test.status {
				t.Errorf("%s: %q, wanted %s: %q", s.Status, got, test.status, test.want)
			}
			if works := test.status == Busy; works != s.SubagentAt.Equal(wrote) || !s.Turn.LastAt.Equal(at) {
				t.Errorf("a subagent wrote at %v, the session at %v", s.SubagentAt, s.Turn.LastAt)
			}
		})
	}
}
