package streamhttp

import (
	"strings"
	"testing"
)

// What a client sees is said by its token, by its subject, or, if neither binds it, by the path that it has chosen.
func TestViews(t *testing.T) {
	is := newIssuer(t, nil)
	opts := is.options()
	opts.Bearer = []string{"all"}
	opts.Views = []View{
		{Name: "review", Bearer: []string{"rev1", "rev2"}, Subjects: []string{"ci/*"}},
		{Name: "ops", Bearer: []string{"ops"}},
	}
	w := newWorld(t, &testHub{}, opts)
	ci, ada := is.token(claimSet{"sub": "ci/7/x"}), is.token(nil)
	own := is.token(claimSet{"aud": resource + "/ops"})
	for _, tc := range []struct {
		token, path string
		status      int
		view, says  string
	}{
		{"all", "/mcp", 200, "", ""},
		{"all", "/mcp/review", 200, "review", ""},
		{"all", "/mcp/ops", 200, "ops", ""},
		{"all", "/mcp/none", 404, "", `there is no view \"none\"`},
		{"all", "/mcp/review/x", 404, "", "there is no view"},
		{"all", "/mcp/", 200, "", ""},
		{"all", "/mcp/review/", 200, "review", ""},
		{"all", "/mcp//", 404, "", ""},
		{"all", "/mcp/review//", 404, "", "there is no view"},
		{"ops", "/mcp/review/", 403, "", "your token is for the view ops only"},
		{"all", "/mcpreview", 404, "", "404: nothing is here; MCP is at /mcp"},
		{"rev1", "/mcp", 200, "review", ""},
		{"rev2", "/mcp/review", 200, "review", ""},
		{"rev1", "/mcp/ops", 403, "", "your token is for the view review only: use /mcp"},
		{"rev1", "/mcp/none", 403, "", "your token is for the view review only: use /mcp"},
		{"ops", "/mcp", 200, "ops", ""},
		{"wrong", "/mcp/ops", 401, "", "not valid"},
		{"", "/mcp/ops", 401, "", "a bearer token is needed"},
		{"", "/mcp/none", 401, "", "a bearer token is needed"},
		{ci, "/mcp", 200, "review", ""},
		{ci, "/mcp/ops", 403, "", "review only"},
		{ada, "/mcp", 200, "", ""},
		{ada, "/mcp/ops", 200, "ops", ""},
		{own, "/mcp/ops", 200, "ops", ""}, // a token for the view's own URL
		{own, "/mcp", 401, "", "not valid here"},
		{own, "/mcp/review", 401, "", "not valid here"},
	} {
		before := w.hub.opened()
		a := w.doAt(tc.path, "POST", initializeLine("2025-11-25"), "Authorization: Bearer "+tc.token)
		if a.status != tc.status || !strings.Contains(a.body, tc.says) {
			t.Errorf("%.8s at %s: %+v", tc.token, tc.path, a)
		}
		if opened := w.hub.opened(); tc.status != 200 {
			if opened != before {
				t.Errorf("%.8s at %s has a session", tc.token, tc.path)
			}
		} else if got := w.hub.session(before).peer.View; got != tc.view {
			t.Errorf("%.8s at %s sees %q", tc.token, tc.path, got)
		}
	}
	// Clients without sessions, too.
	before := w.hub.opened()
	a := w.doAt("/mcp", "POST", modernLine(1, "tools/list", ""), append(modernHeaders("tools/list"), "Authorization: Bearer ops")...)
	if a.status != 200 || w.hub.session(before).peer.View != "ops" {
		t.Errorf("a request without a session: %+v", a)
	}
	// A client finds out where to get a token for the URL that it has.
	a = w.doAt("/mcp/ops", "POST", initializeLine("2025-11-25"))
	where := "/.well-known/oauth-protected-resource/mcp/ops"
	if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, `resource_metadata="https://mcp.example`+where+`"`) {
		t.Errorf("the challenge is %s", got)
	}
	for _, at := range []string{where, where + "/"} {
		if a := w.doAt(at, "GET", ""); a.status != 200 || !strings.Contains(a.body, `"resource":"https://mcp.example/mcp/ops"`) {
			t.Errorf("the metadata at %s are %+v", at, a)
		}
	}
}

// Where nobody needs a token, the path decides; and without views there is only one path.
func TestViewsByPath(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Views: []View{{Name: "ops"}}})
	for path, status := range map[string]int{"/mcp": 200, "/mcp/ops": 200, "/mcp/none": 404} {
		if a := w.doAt(path, "POST", initializeLine("2025-11-25")); a.status != status {
			t.Errorf("%s: %+v", path, a)
		}
	}
	none := newWorld(t, &testHub{}, Options{})
	if a := none.doAt("/mcp/ops", "POST", initializeLine("2025-11-25")); a.status != 404 {
		t.Errorf("without views: %+v", a)
	}
}

// Only tokens of views: whoever has none stays outside.
func TestTokensOfViewsAreAsked(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Views: []View{{Name: "ops", Bearer: []string{"ops"}}}})
	for _, path := range []string{"/mcp", "/mcp/ops"} {
		if a := w.doAt(path, "POST", initializeLine("2025-11-25")); a.status != 401 {
			t.Errorf("%s without a token: %+v", path, a)
		}
	}
}

// A session is what it was opened for: with the same token, another path is another view.
func TestSessionBelongsToItsView(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Bearer: []string{"all"}, Views: []View{{Name: "ops", Bearer: []string{"own"}}, {Name: "dev"}}})
	const all = "Authorization: Bearer all"
	session := "Mcp-Session-Id: " + w.doAt("/mcp/ops", "POST", initializeLine("2025-11-25"), all).header.Get("Mcp-Session-Id")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for _, path := range []string{"/mcp", "/mcp/dev"} {
			if a := w.doAt(path, method, call(1), session, all); a.status != 404 {
				t.Errorf("%s at %s: %+v", method, path, a)
			}
		}
		if a := w.doAt("/mcp/ops", method, call(1), session, "Authorization: Bearer own"); a.status != 404 {
			t.Errorf("%s by another token: %+v", method, a)
		}
	}
	if a := w.doAt("/mcp/ops", "POST", call(1), session, all); a.status != 200 {
		t.Errorf("the owner: %+v", a)
	}
}

// While it runs, tokens and views come and go: who may not see a session's view any more has lost the session.
func TestViewsChange(t *testing.T) {
	hub := &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if strings.Contains(string(line), "listen") {
			reply.Send([]byte(note(0)))
			return
		}
		echo(s, line, reply)
	}}
	w := newWorld(t, hub, Options{Bearer: []string{"all"}, Views: []View{
		{Name: "ops", Bearer: []string{"gone", "stays", "moves"}}, {Name: "dev"}, {Name: "old"},
	}})
	type client struct{ token, path, session string }
	begin := func(token, path string) client {
		t.Helper()
		a := w.doAt(path, "POST", initializeLine("2025-11-25"), "Authorization: Bearer "+token)
		if a.status != 200 {
			t.Fatalf("%s at %s: %+v", token, path, a)
		}
		return client{token, path, a.header.Get("Mcp-Session-Id")}
	}
	clients := map[client]int{
		begin("gone", "/mcp"): 401, begin("stays", "/mcp"): 200, begin("moves", "/mcp"): 404,
		begin("all", "/mcp"): 200, begin("all", "/mcp/dev"): 200, begin("all", "/mcp/old"): 404,
	}
	listen := append(modernHeaders("subscriptions/listen"), "Authorization: Bearer gone")
	stream := w.open("POST", modernLine(1, "subscriptions/listen", ""), listen...)
	stream.want(note(0))
	w.front.SetViews([]View{{Name: "ops", Bearer: []string{"stays"}}, {Name: "dev", Bearer: []string{"moves"}}})
	for c, status := range clients {
		a := w.doAt(c.path, "POST", call(1), "Mcp-Session-Id: "+c.session, "Authorization: Bearer "+c.token)
		if a.status != status {
			t.Errorf("%s at %s: %+v, want %d", c.token, c.path, a, status)
		}
	}
	stream.want("END")
	if a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer moves"); a.status != 200 || hub.session(hub.opened()-1).peer.View != "dev" {
		t.Errorf("with its new view: %+v", a)
	}
}

func TestSubjectGlobs(t *testing.T) {
	for glob, want := range map[string]bool{"*": true, "auth0|*": true, "auth0?1/[x]": true, "auth0|1": false, "ada": false, "[": true} {
		if matches(glob, "auth0|1/x") != want {
			t.Errorf("%s: %v", glob, !want)
		}
	}
}
