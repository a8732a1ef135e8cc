package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A load balancer finds a session's server by its cookie; what it changes or takes back counts from the next request on, and the
// user's own Cookie header stays.
func TestCookiesGoBack(t *testing.T) {
	got := make(chan string, 10)
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) {
			w.Header().Add("Set-Cookie", "AWSALB=a; Path=/; Expires=Fri, 01 Jan 2100 00:00:00 GMT")
			w.Header().Add("Set-Cookie", "elsewhere=1; Domain=other.example")
			w.Header().Set("Mcp-Session-Id", "one")
			result(w, r, greeting)
		},
		"GET": func(w http.ResponseWriter, r seen) {
			got <- "GET " + r.Header.Get("Cookie")
			w.WriteHeader(http.StatusMethodNotAllowed)
		},
		"ping": func(w http.ResponseWriter, r seen) {
			got <- r.Header.Get("Cookie")
			w.Header().Add("Set-Cookie", map[string]string{"2": "AWSALB=b; Path=/", "3": "AWSALB=; Path=/; Max-Age=0"}[r.id])
			result(w, r, "{}")
		},
		"DELETE": func(w http.ResponseWriter, r seen) { got <- "DELETE " + r.Header.Get("Cookie") },
	})
	c := dial(t, Options{URL: s.URL + "/mcp", Headers: map[string]string{"Cookie": "mine=1"}})
	c.greet()
	for id := 2; id < 5; id++ {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		c.wantLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
	}
	c.Close()
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GET mine=1; AWSALB=a", "mine=1; AWSALB=a", "mine=1; AWSALB=b", "mine=1", "DELETE mine=1"} {
		if cookie := <-got; cookie != want {
			t.Errorf("Cookie %q, want %q", cookie, want)
		}
	}
}

// Another connection to the same server knows nothing of them.
func TestCookiesAreOfOneConnection(t *testing.T) {
	got := make(chan string, 2)
	s := serve(t, map[string]func(http.ResponseWriter, seen){"initialize": func(w http.ResponseWriter, r seen) {
		got <- r.Header.Get("Cookie")
		w.Header().Set("Set-Cookie", "a=1")
		result(w, r, greeting)
	}})
	for range 2 {
		dial(t, Options{URL: s.URL}).greet()
		if cookie := <-got; cookie != "" {
			t.Errorf("Cookie %q", cookie)
		}
	}
}

// Another port or scheme of the same host is another origin.
func TestCookiesOfTheOriginOnly(t *testing.T) {
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	own := parse("https://a.example:8443/mcp")
	c := newCookies(own)
	for _, other := range []string{"https://a.example/mcp", "http://a.example:8443/mcp", "https://b.a.example:8443/mcp", "https://example:8443/"} {
		c.SetCookies(parse(other), []*http.Cookie{{Name: "foreign", Value: "1", Domain: "a.example"}})
		c.SetCookies(own, []*http.Cookie{{Name: "own", Value: "1", Domain: "a.example"}})
		if found := c.Cookies(parse(other)); len(found) > 0 {
			t.Errorf("%s gets %v", other, found)
		}
	}
	if found := c.Cookies(own); len(found) != 1 || found[0].Name != "own" {
		t.Errorf("the server itself gets %v", found)
	}
}

// A server that gives each answer a new cookie makes no request longer and longer; those it has given before it can change.
func TestCookiesAreBounded(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.example", Path: "/mcp"}
	c := newCookies(u)
	for i := range 10 * maxCookies {
		c.SetCookies(u, []*http.Cookie{{Name: fmt.Sprint("c", i), Value: "1"}, {Name: fmt.Sprint("p", i), Path: fmt.Sprint("/", i)}})
	}
	c.SetCookies(u, []*http.Cookie{{Name: "c0", Value: "2"}, {Name: "c1", Value: strings.Repeat("x", maxCookie)}})
	found := c.Cookies(u)
	if len(found) != maxCookies/2 || found[0].String() != "c0=2" || found[1].String() != "c1=1" {
		t.Errorf("%d cookies: %v", len(found), found)
	}
	if len(c.seen) != maxCookies {
		t.Errorf("%d are kept", len(c.seen))
	}
}
