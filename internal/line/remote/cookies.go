package remote

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"sync"
)

// Bounds of what is kept of a server's cookies: those that RFC 6265 (6.1) wants at least.
const (
	maxCookies = 50
	maxCookie  = 4 << 10 // name and value in bytes
)

// cookies are those of one connection, in memory: load balancers keep a session at its server by them. They come from one origin and
// go back to it alone, which a jar, that knows hosts only, does not see to; so there is no need for a list of public suffixes.
type cookies struct {
	origin *url.URL

	mu   sync.Mutex
	jar  *cookiejar.Jar
	seen map[[3]string]bool // name, domain and path of those that the jar was given
}

func newCookies(origin *url.URL) *cookies {
	jar, _ := cookiejar.New(nil) // never fails
	return &cookies{origin: origin, jar: jar, seen: map[[3]string]bool{}}
}

// SetCookies implements http.CookieJar. Beyond the bounds only cookies that are there already are changed.
func (c *cookies) SetCookies(u *url.URL, given []*http.Cookie) {
	if !sameOrigin(u, c.origin) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jar.SetCookies(u, slices.DeleteFunc(slices.Clone(given), func(one *http.Cookie) bool {
		key := [3]string{one.Name, one.Domain, one.Path}
		if len(one.Name)+len(one.Value) > maxCookie || !c.seen[key] && len(c.seen) >= maxCookies {
			return true
		}
		c.seen[key] = true
		return false
	}))
}

// Cookies implements http.CookieJar.
func (c *cookies) Cookies(u *url.URL) []*http.Cookie {
	if !sameOrigin(u, c.origin) {
		return nil
	}
	return c.jar.Cookies(u)
}
