package streamhttp

import (
	"net/http"
	"strings"
	"testing"
)

func TestHostAndOrigin(t *testing.T) {
	extra := map[string]http.Handler{"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })}
	plain := newWorld(t, &testHub{}, Options{Extra: extra})
	named := newWorld(t, &testHub{}, Options{Hosts: []string{"mcp.example", "other.example:8080"}, Origins: []string{"https://app.example", "null"}})
	for _, tc := range []struct {
		name    string
		w       *world
		headers []string
		status  int
	}{
		{"as it comes", plain, nil, 200},
		{"localhost", plain, []string{"Host: localhost"}, 200},
		{"localhost with a port", plain, []string{"Host: LOCALHOST:1234"}, 200},
		{"below localhost", plain, []string{"Host: app.localhost"}, 200},
		{"IPv6", plain, []string{"Host: [::1]:80"}, 200},
		{"another name", plain, []string{"Host: evil.example"}, 403},
		{"another name with our port", plain, []string{"Host: evil.example:80"}, 403},
		{"a name that begins as ours", plain, []string{"Host: localhost.evil.example"}, 403},
		{"a name that looks like an address", plain, []string{"Host: 127.0.0.1.evil.example"}, 403},
		{"another machine's address", plain, []string{"Host: 192.0.2.1"}, 403},
		{"a configured name", named, []string{"Host: mcp.example:443"}, 200},
		{"a configured name with its port", named, []string{"Host: other.example:8080"}, 200},
		{"with another port", named, []string{"Host: other.example"}, 403},
		{"below a configured name", named, []string{"Host: x.mcp.example"}, 403},
		{"our own page", plain, []string{"Origin: " + plain.url}, 200},
		{"our own page by name", plain, []string{"Host: localhost:8080", "Origin: http://localhost:8080"}, 200},
		{"our own page at the usual port", plain, []string{"Host: localhost:80", "Origin: http://localhost"}, 200},
		{"another port's page", plain, []string{"Origin: http://localhost:5173"}, 403},
		{"another port's page by address", plain, []string{"Origin: http://127.0.0.1:5173"}, 403},
		{"another port's page by the same name", plain, []string{"Host: localhost:8080", "Origin: http://localhost:5173"}, 403},
		{"the usual port's page", plain, []string{"Origin: http://127.0.0.1"}, 403},
		{"our own name with TLS", plain, []string{"Host: localhost:8080", "Origin: https://localhost:8080"}, 403},
		{"a star, which is a name like others", newWorld(t, &testHub{}, Options{Hosts: []string{"*"}, Origins: []string{"*"}}), []string{"Host: evil.example", "Origin: http://evil.example"}, 403},
		{"another page", plain, []string{"Origin: https://evil.example"}, 403},
		{"a page like a local one", plain, []string{"Origin: http://localhost@evil.example"}, 403},
		{"no page", plain, []string{"Origin: null"}, 403},
		{"something else", plain, []string{"Origin: file://localhost"}, 403},
		{"two origins", plain, []string{"Origin: " + plain.url, "Origin: https://evil.example"}, 403},
		{"a configured page", named, []string{"Origin: https://app.example"}, 200},
		{"the same without TLS", named, []string{"Origin: http://app.example"}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.w.hub.opened()
			a := tc.w.do("POST", initializeLine("2025-11-25"), tc.headers...)
			if a.status != tc.status {
				t.Errorf("%d %s, want %d", a.status, a.body, tc.status)
			}
			if refused := tc.w.hub.opened() == before; refused != (tc.status == 403) {
				t.Error("the hub heard of who was refused, or not of who was let in")
			}
			if tc.status == 403 && (!strings.Contains(a.body, `{"jsonrpc":"2.0","error":{"code":-32600`) || a.header.Get("Access-Control-Allow-Origin") != "") {
				t.Errorf("refusal: %+v", a)
			}
		})
	}
	for host, status := range map[string]int{"localhost": 200, "evil.example": 403} {
		r := request(t.Context(), "GET", plain.url+"/healthz", "", "Host: "+host)
		resp, err := plain.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("/healthz at %s: %d, want %d", host, resp.StatusCode, status)
		}
	}
}

func TestPreflight(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Bearer: []string{"secret"}, Origins: []string{"https://app.example"}})
	a := w.do("OPTIONS", "", "Origin: https://app.example", "Access-Control-Request-Method: POST",
		"Access-Control-Request-Headers: mcp-param-region, authorization", "Access-Control-Request-Private-Network: true")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":          "https://app.example",
		"Access-Control-Allow-Methods":         "GET, POST, DELETE",
		"Access-Control-Allow-Headers":         "mcp-param-region, authorization",
		"Access-Control-Allow-Private-Network": "true",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.status != 204 {
		t.Errorf("status %d", a.status)
	}
	if a := w.do("OPTIONS", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST"); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page: %+v", a)
	}
	if a := w.do("POST", initializeLine("2025-11-25"), "Origin: https://app.example", "Authorization: Bearer secret"); a.status != 200 ||
		!strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") || a.header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("the request: %+v", a)
	}
}

func TestStaticTokens(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{Bearer: []string{"one", "two"}})
	for _, tc := range []struct {
		headers []string
		status  int
		says    string
	}{
		{nil, 401, "Bearer"},
		{[]string{"Authorization: Bearer wrong"}, 401, `error="invalid_token"`},
		{[]string{"Authorization: Bearer on"}, 401, `error="invalid_token"`},
		{[]string{"Authorization: Bearer one1"}, 401, `error="invalid_token"`},
		{[]string{"Authorization: Basic one"}, 401, "Bearer"},
		{[]string{"Authorization: Bearer one", "Authorization: Bearer two"}, 401, "Bearer"},
		{[]string{"Authorization: bearer two"}, 200, ""},
	} {
		a := w.do("POST", initializeLine("2025-11-25"), tc.headers...)
		if a.status != tc.status || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), strings.Split(tc.says, " ")[0]) && !strings.Contains(a.header.Get("WWW-Authenticate"), tc.says) {
			t.Errorf("%q: %+v", tc.headers, a)
		}
	}
	two, _ := newRights([]string{"two"}, nil).static("two")
	if hub.opened() != 1 || hub.session(0).peer.Subject != two.subject {
		t.Errorf("%d sessions, of %q", hub.opened(), hub.session(0).peer.Subject)
	}
	for _, method := range []string{"GET", "DELETE", "PUT"} {
		if a := w.do(method, ""); a.status != 401 {
			t.Errorf("%s without a token: %+v", method, a)
		}
	}
}

// Whoever has learned a session's id but has another token does not get in (session hijacking).
func TestSessionBelongsToItsOwner(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Bearer: []string{"one", "two"}})
	const one, two = "Authorization: Bearer one", "Authorization: Bearer two"
	session := "Mcp-Session-Id: " + w.do("POST", initializeLine("2025-11-25"), one).header.Get("Mcp-Session-Id")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if a := w.do(method, call(1), session, two); a.status != 404 {
			t.Errorf("%s by another: %+v", method, a)
		}
	}
	if a := w.do("POST", call(1), session, one); a.status != 200 {
		t.Errorf("the owner: %+v", a)
	}
}
