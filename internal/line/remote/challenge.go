package remote

import (
	"net/http"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// maxChallenge is how much of one WWW-Authenticate header is read, in bytes.
const maxChallenge = 16 << 10

// challenge is what a server's WWW-Authenticate says about bearer tokens (RFC 6750, RFC 9728).
type challenge struct {
	metadata string // URL of the protected-resource metadata
	scopes   []string
	problem  string // error
}

// isChallenge reports whether another token could help.
func isChallenge(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && challengeOf(resp).problem == "insufficient_scope"
}

// challengeOf reads the first challenge for bearer tokens; zero if there is none.
func challengeOf(resp *http.Response) challenge {
	for _, h := range resp.Header.Values("Www-Authenticate") {
		for scheme, params := range challenges(h[:min(len(h), maxChallenge)]) {
			if strings.EqualFold(scheme, "Bearer") {
				return challenge{
					metadata: params["resource_metadata"], scopes: strings.Fields(params["scope"]), problem: params["error"],
				}
			}
		}
	}
	return challenge{}
}

// consentsMost is how often a user is asked for the same before the server has let a request through with it. A second time may
// help where the first one granted less than was asked for.
const consentsMost = 2

// vainConsents counts by scopes how often the user has consented since a server was content with that: a server that never is,
// must not have its user asked by each request. The zero value is ready.
type vainConsents struct {
	mu sync.Mutex
	of map[string]int
}

// enough reports whether the user should not be asked again.
func (v *vainConsents) enough(asked challenge) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.of[joinScopes(asked.scopes)] >= consentsMost
}

func (v *vainConsents) granted(asked challenge) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of = map[string]int{}
	}
	v.of[joinScopes(asked.scopes)]++
}

// over notes that a request has been let through after these challenges.
func (v *vainConsents) over(asked []challenge) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range asked {
		delete(v.of, joinScopes(one.scopes))
	}
}

// challengeWord is a scheme, or a parameter with its value: a quoted string or a token. A string may be unterminated.
var challengeWord = lazyregexp.New(`(?s)^[ \t,]*([^ \t,="]+)[ \t]*(?:(=)[ \t=]*(?:"((?:\\.|[^"])*)"?|([^ \t,="]*)))?`)

// quotedPair is an escaped character.
var quotedPair = lazyregexp.New(`(?s)\\(.)`)

// challenges yields the schemes of a WWW-Authenticate header (RFC 9110, 11.6.1) with their parameters, keys in lower
// case. It stops at the first syntax error.
func challenges(h string) func(yield func(string, map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		scheme, params, rest := "", map[string]string{}, h
		for m := challengeWord.FindStringSubmatch(rest); m != nil; m = challengeWord.FindStringSubmatch(rest) {
			rest = rest[len(m[0]):]
			if m[2] != "" {
				params[strings.ToLower(m[1])] = quotedPair.ReplaceAllString(m[3], "$1") + m[4]
				continue
			}
			if scheme != "" && !yield(scheme, params) {
				return
			}
			scheme, params = m[1], map[string]string{}
		}
		if scheme != "" {
			yield(scheme, params)
		}
	}
}
