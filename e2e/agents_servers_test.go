package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// TestMonitorRestartsTheServer: an agent waits for a tool call of an MCP server that never comes back. Its server is restarted within
// the time that a tool may take and what is needed to notice it; the call is answered, the agent goes on by itself, and nobody is
// told.
func TestMonitorRestartsTheServer(t *testing.T) {
	t.Parallel()
	limit := waits(20 * time.Second)
	d := declaration{"start": declaration{"resume": resume("claude")}, "expect": declaration{"tool": limit.String(), "done": declaration{"exit": 0}}}
	a, m := startWatched(t, "claude", mockmodel.Use, agentSetup{
		headless: true, noHooks: true, wrapped: true,
		server: slices.Concat([]string{timed(), "run", "--name", "till", "--"}, sickServer()),
		script: mockmodel.Script{Tool: "mcp__" + serverName + "__wedge", Input: map[string]any{}},
	}, d, nil)
	a.await("the call", func() bool {
		_, err := os.Stat(a.w.path("wedged"))
		return err == nil
	})
	called, before := time.Now(), len(a.w.starts())
	if v := m.judges("server_hung"); !strings.Contains(v.Verdict.Details, "wedge of the MCP server till") {
		t.Errorf("the verdict does not name the call: %s", v.Verdict.Details)
	}
	if state := a.ended(); !state.Success() {
		t.Errorf("the agent has ended with %v\n%s", state, a.screen())
	}
	took := time.Since(called)
	t.Logf("from the call to the end of the agent's work: %v, with a limit of %v", took.Round(time.Millisecond), limit)
	m.judges("done")
	m.tellsNobody()
	if pids := a.w.starts(); len(pids) != before+1 {
		t.Errorf("the processes of the server: %v, of which %d before the restart", pids, before)
	}
	if log := m.journal(); strings.Count(log, "- **Action:**") != 1 || !strings.Contains(log, "restart_server") {
		t.Errorf("the journal:\n%s", log)
	}
}

// TestMonitorTellsOfAServersLogin: the agent's remote server wants a login. A person is told which server, whose it is, and what to
// run; the agent is left alone.
func TestMonitorTellsOfAServersLogin(t *testing.T) {
	t.Parallel()
	var far *httptest.Server
	far = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			_, _ = w.Write([]byte(`{"resource":"` + far.URL + `/mcp","authorization_servers":["` + far.URL + `"]}`))
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			_, _ = w.Write([]byte(`{"issuer":"` + far.URL + `","authorization_endpoint":"` + far.URL + `/authorize","token_endpoint":"` + far.URL +
				`/token","registration_endpoint":"` + far.URL + `/register","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]}`))
		case r.URL.Path == "/register":
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"client_id":"c1","redirect_uris":["http://127.0.0.1/callback"]}`))
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+far.URL+`/.well-known/oauth-protected-resource"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(far.Close)
	a, m := startWatched(t, "claude", mockmodel.Tool, agentSetup{
		headless: true, noHooks: true, script: mockmodel.Script{Command: "sh check.sh 120"},
		server: []string{timed(), "run", "--name", "till", far.URL + "/mcp", "--no-browser"},
	}, declaration{}, nil)
	msg := m.tells(1, says("The MCP server till of shop wants a login", "To do: ", "outlive login "+far.URL+"/mcp"))
	t.Logf("told:\n%s", msg.Text)
	if len(a.running()) == 0 {
		t.Error("the agent was ended")
	}
	if list := m.outlive("agent", "list", "--home", m.dir); !strings.Contains(list, "till") {
		t.Errorf("outlive agent list does not show it:\n%s", list)
	}
	if n := len(m.phone.Messages()); n != 1 {
		t.Errorf("%d messages: %+v", n, m.phone.Messages())
	}
}
