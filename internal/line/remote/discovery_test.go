package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// documents serves JSON documents by path and remembers what was asked for. SELF in them is the server's origin.
func documents(t *testing.T, byPath map[string]string) (origin string, o *OAuth, asked *[]string) {
	asked = new([]string)
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		text, ok := byPath[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		reply(w, strings.ReplaceAll(text, "SELF", s.URL))
	}))
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
	return s.URL, NewOAuth(OAuthOptions{Transport: transport}), asked
}

func TestDiscovery(t *testing.T) {
	const root, named = "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"
	const own = "/.well-known/oauth-authorization-server"
	const server = `{"issuer":"SELF%s","token_endpoint":"SELF/token"}`
	for _, tc := range []struct {
		name   string
		asked  string // resource_metadata of the challenge
		have   map[string]string
		want   string // token endpoint and resource, or part of the error
		places []string
	}{
		{
			name: "the challenge says where", asked: "SELF/meta",
			have: map[string]string{
				"/meta": `{"resource":"SELF/mcp","authorization_servers":["SELF/t"]}`,
				"/.well-known/oauth-authorization-server/t": fmt.Sprintf(server, "/t"),
			},
			want: "SELF/token SELF/mcp", places: []string{"/meta", "/.well-known/oauth-authorization-server/t"},
		}, {
			name: "at the root, and OpenID at the end",
			have: map[string]string{
				root:                                  `{"resource":"SELF","authorization_servers":["SELF/t"]}`,
				"/t/.well-known/openid-configuration": fmt.Sprintf(server, "/t"),
			},
			want: "SELF/token SELF",
			places: []string{named, root, "/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t",
				"/t/.well-known/openid-configuration"},
		}, {
			name: "a page in place of metadata",
			have: map[string]string{named: `<html>`, root: `{"resource":"SELF/","authorization_servers":["SELF"]}`,
				"/.well-known/openid-configuration": fmt.Sprintf(server, "")},
			want:   "SELF/token SELF/",
			places: []string{named, root, "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		}, {
			name: "2025-03-26, metadata", have: map[string]string{"/.well-known/oauth-authorization-server": fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{named, root, "/.well-known/oauth-authorization-server"},
		}, {
			name: "2025-03-26, nothing", want: "SELF/token SELF/mcp",
			places: []string{named, root, "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		}, {
			name: "the endpoint as its own issuer, without metadata", have: map[string]string{named: `{"resource":"SELF/mcp","authorization_servers":["SELF/mcp"]}`},
			want: "SELF/token SELF/mcp", places: []string{named, own + "/mcp", "/.well-known/openid-configuration/mcp", "/mcp/.well-known/openid-configuration"},
		}, {
			name: "the challenge leads nowhere", asked: "SELF/meta",
			have: map[string]string{root: `{"resource":"SELF/mcp"}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{"/meta", named, root, own},
		}, {
			name: "the challenge names what only a proxy knows", asked: "http://internal.example/meta",
			have: map[string]string{named: `{"resource":"SELF/mcp"}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{named, own},
		}, {
			name: "no authorization server", have: map[string]string{named: `{"resource":"SELF"}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF", places: []string{named, own},
		}, {
			name: "none in the list", have: map[string]string{named: `{"resource":"SELF","authorization_servers":[]}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF", places: []string{named, own},
		}, {
			name: "no resource", have: map[string]string{named: `{"authorization_servers":["SELF"]}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{named, own},
		}, {
			name: "a document that says nothing", have: map[string]string{named: `{"ok":true}`, root: `{"authorization_servers":["SELF"]}`,
				own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{named, root, own},
		}, {
			name: "the challenge says where, relative to the server", asked: "meta?x=1",
			have: map[string]string{"/meta": `{"resource":"SELF/mcp"}`, own: fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{"/meta", own},
		}, {
			name: "byte order marks", have: map[string]string{named: "\uFEFF" + `{"resource":"SELF/mcp"}`, own: "\uFEFF" + fmt.Sprintf(server, "")},
			want: "SELF/token SELF/mcp", places: []string{named, own},
		}, {
			name: "about something else", have: map[string]string{named: `{"resource":"SELF/other","authorization_servers":["SELF"]}`},
			want: "not about", places: []string{named},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			origin, o, places := documents(t, tc.have)
			endpoint, err := url.Parse(origin + "/mcp")
			if err != nil {
				t.Fatal(err)
			}
			o.endpoint = endpoint
			d, err := o.discover(t.Context(), challenge{metadata: strings.ReplaceAll(tc.asked, "SELF", origin)})
			got := strings.ReplaceAll(d.server.TokenEndpoint+" "+d.resource, origin, "SELF")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if diff := gocmp.Diff(tc.places, *places); diff != "" {
				t.Errorf("asked for: %s", diff)
			}
		})
	}
}

// A token is for a server if it is for its URL or for something above it, and for nothing beside.
func TestCovers(t *testing.T) {
	endpoint, err := url.Parse("https://a.example/x/mcp")
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]bool{
		"https://a.example/x/mcp": true, "https://a.example/x/mcp/": true, "https://a.example/x": true, "https://a.example": true,
		"HTTPS://A.example/": true, "https://a.example:443/x/mcp": true, "https://a.example/x/m": false, "https://a.example/x/mcp/y": false, "http://a.example/x/mcp": false,
		"https://a.example:8443/x/mcp": false, "https://b.example": false, "": false, "://": false,
	} {
		if covers(resource, endpoint) != want {
			t.Errorf("%q: want %v", resource, want)
		}
	}
}

// Only the slash of an empty path means nothing.
func TestSameURI(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"https://a.example", "https://a.example/", true}, {"https://a.example?x", "https://a.example/?x", true}, {"https://a.example/x", "https://a.example/x", true},
		{"https://a.example/x", "https://a.example/x/", false}, {"https://a.example", "https://a.example//", false}, {"https://a.example", "https://A.example/", false},
		{"https://a.example", "http://a.example", false}, {"https://a.example", "https://a.example:443", false}, {"https://a.example", "https://a.example.b", false},
		{"", "/", false}, {"https://", "https:///", false}, {"a", "a/", false},
	} {
		if sameURI(tc.a, tc.b) != tc.want || sameURI(tc.b, tc.a) != tc.want {
			t.Errorf("%q and %q: want %v", tc.a, tc.b, tc.want)
		}
	}
}

// What the MCP server names is asked over https, or on this machine if the MCP server is there itself.
func TestMustBeSafe(t *testing.T) {
	const far, near = 1, 2 // from where it is safe
	for place, want := range map[string]int{
		"https://x.example/t": far | near, "http://127.0.0.1:1/t": near, "http://[::1]/t": near, "http://localhost/t": near,
		"http://LOCALHOST./t": near, "http://127.9.9.9/admin/shutdown?really=1": near,
		"http://x.example/t": 0, "http://localhost.example/t": 0, "javascript:alert(1)": 0, "https:///t": 0, "file:///t": 0,
	} {
		for endpoint, bit := range map[string]int{"https://mcp.example/mcp": far, "http://127.0.0.1:9/mcp": near} {
			o := NewOAuth(OAuthOptions{Endpoint: endpoint})
			if err := o.mustBeSafe(place); (err == nil) != (want&bit != 0) {
				t.Errorf("%q for %s: %v", place, endpoint, err)
			}
		}
	}
}

// Who we are: what is configured before what can be looked up, before what has to be registered.
func TestIdentify(t *testing.T) {
	_, o, _ := documents(t, nil)
	known := Grant{ClientID: "known", ClientSecret: "k", ClientAuth: authPost, RedirectURI: "http://127.0.0.1:1/callback"}
	for _, tc := range []struct {
		name     string
		opts     OAuthOptions
		server   authServer
		grant    Grant
		redirect string
		want     string // client, secret, way
	}{
		{"configured", OAuthOptions{ClientID: "c", ClientSecret: "s"}, authServer{TokenAuth: []string{authPost}}, known, "r", "c s client_secret_post"},
		{"configured, public", OAuthOptions{ClientID: "c"}, authServer{}, Grant{}, "r", "c  none"},
		{"registered before", OAuthOptions{}, authServer{}, known, known.RedirectURI, "known k client_secret_post"},
		{"registered for another port", OAuthOptions{}, authServer{}, known, "http://127.0.0.1:2/callback", "configure a client id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o.opts = tc.opts
			g, err := o.identify(t.Context(), tc.grant, tc.server, tc.redirect, nil)
			got := g.ClientID + " " + g.ClientSecret + " " + g.ClientAuth
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// What a token endpoint says, in the forms that are met. It is asked once: a refresh token may be used once only.
func TestTokenAnswer(t *testing.T) {
	const usual = `{"access_token":"t","token_type":"bearer","expires_in":3600}`
	for _, tc := range []struct {
		name, body string
		want       string
		expires    bool
		status     int    // 0: 200
		kind       string // Content-Type, "": JSON
	}{
		{name: "usual", body: usual, want: "t a b r0", expires: true},
		{name: "all of it", body: `{"access_token":"t","expires_in":"60","refresh_token":"r1","scope":"a"}`, want: "t a r1", expires: true},
		{name: "with a fraction", body: `{"access_token":"t","expires_in":3599.97,"scope":["a"]}`, want: "t a b r0", expires: true},
		{name: "no end", body: `{"access_token":"t","expires_in":0}`, want: "t a b r0"},
		{name: "no end, in other words", body: `{"access_token":"t","expires_in":-1}`, want: "t a b r0"},
		{name: "no end, without a word", body: `{"access_token":"t","expires_in":null,"scope":null}`, want: "t a b r0"},
		{name: "no end that can be read", body: `{"access_token":"t","expires_in":"soon"}`, want: "t a b r0"},
		{name: "byte order mark", body: "\uFEFF" + usual, want: "t a b r0", expires: true},
		{name: "created", body: usual, want: "t a b r0", expires: true, status: 201},
		{name: "called a text", body: usual, want: "t a b r0", expires: true, kind: "text/plain; charset=utf-8"},
		{name: "called a page", body: usual, want: "t a b r0", expires: true, kind: "text/html"},
		{name: "no token", body: `{"token_type":"bearer"}`, want: "without a token"},
		{name: "a word of its own", body: `{"access_token":"t","token_type":"bot"}`, want: "t a b r0"},
		{name: "bound token", body: `{"access_token":"t","token_type":"DPoP"}`, want: "DPoP"},
		{name: "no", body: `{"error":"invalid_grant","error_description":"used"}`, want: "refused: invalid_grant: used", status: 400},
		{name: "no, called a text", body: `{"error":"invalid_grant"}`, want: "refused: invalid_grant", status: 400, kind: "text/plain"},
		{name: "no, and all is well", body: `{"error":"invalid_grant"}`, want: "without a token"},
		{name: "no, of a server at fault", body: `{"error":"invalid_grant"}`, want: "as gives no token: HTTP 503 {", status: 503},
		{name: "a page", body: "<html>" + strings.Repeat("x", 2000), want: "HTTP 400 <html>xxx", status: 400, kind: "text/html"},
		{name: "elsewhere", want: "HTTP 307", status: 307},
		{name: "without end", body: strings.Repeat(" ", maxMetadata) + usual, want: "read the token"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if got := r.Header.Get("Accept"); got != "application/json" { // some answer with a form otherwise
					t.Errorf("Accept: %q", got)
				}
				w.Header().Set("Location", "https://elsewhere.example")
				w.Header().Set("Content-Type", cmp.Or(tc.kind, "application/json"))
				w.WriteHeader(cmp.Or(tc.status, 200))
				_, _ = io.WriteString(w, tc.body)
			}))
			transport := &http.Transport{}
			defer func() { transport.CloseIdleConnections(); s.Close() }()
			o := NewOAuth(OAuthOptions{Transport: transport})
			g, err := o.redeem(t.Context(), Grant{Issuer: "as", TokenURL: s.URL, RefreshToken: "r0"}, url.Values{"scope": {"a b"}})
			got := g.AccessToken + " " + joinScopes(g.Scopes) + " " + g.RefreshToken
			if no := (tokenRefusal{}); errors.As(err, &no) {
				got = "refused: " + no.Error()
			} else if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) || len(got) > 300 || g.Expiry.IsZero() == tc.expires || asked != 1 {
				t.Errorf("%s (expires %v, asked %d times), want %s", got, g.Expiry, asked, tc.want)
			}
		})
	}
}

func TestWayToAuthenticate(t *testing.T) {
	for _, tc := range []struct {
		secret  string
		offered []string
		want    string
	}{
		{"", []string{authBasic}, authNone},
		{"s", nil, authBasic},
		{"s", []string{authPost, authBasic}, authBasic},
		{"s", []string{authNone, authPost}, authPost},
		{"s", []string{authNone}, authNone},
		{"s", []string{"private_key_jwt"}, authBasic},
	} {
		if got := wayToAuthenticate(tc.secret, tc.offered); got != tc.want {
			t.Errorf("%q %v: %s, want %s", tc.secret, tc.offered, got, tc.want)
		}
	}
}

func TestTokenRefusal(t *testing.T) {
	for want, r := range map[string]tokenRefusal{
		"invalid_grant":      {Code: "invalid_grant"},
		"invalid_grant: old": {Code: "invalid_grant", Description: " old\n"},
	} {
		if got := r.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
