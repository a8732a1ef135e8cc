package remote

import (
	"net/http"
	"strings"
)

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

// challengeOf reads the first challenge for bearer tokens; its zero value if there is none that can be read.
func challengeOf(resp *http.Response) challenge {
	for _, h := range resp.Header.Values("Www-Authenticate") {
		for scheme, params := range challenges(h) {
			if strings.EqualFold(scheme, "Bearer") {
				return challenge{
					metadata: params["resource_metadata"], scopes: strings.Fields(params["scope"]), problem: params["error"],
				}
			}
		}
	}
	return challenge{}
}

// challenges goes through a WWW-Authenticate header (RFC 9110, 11.6.1): schemes with their parameters, keys in lower case. It stops
// where the header makes no sense any more.
func challenges(h string) func(yield func(string, map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		scheme, params := "", map[string]string{}
		p := headerParser{rest: h}
		for {
			p.skip(" \t,")
			word := p.token()
			if word == "" {
				break
			}
			p.skip(" \t")
			if !p.take('=') { // a scheme, perhaps with parameters behind it
				if scheme != "" && !yield(scheme, params) {
					return
				}
				scheme, params = word, map[string]string{}
				continue
			}
			p.skip(" \t=")
			params[strings.ToLower(word)] = p.value()
		}
		if scheme != "" {
			yield(scheme, params)
		}
	}
}

type headerParser struct{ rest string }

func (p *headerParser) skip(any string) { p.rest = strings.TrimLeft(p.rest, any) }

func (p *headerParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// token takes everything up to a separator.
func (p *headerParser) token() string {
	n := strings.IndexAny(p.rest, " \t,=\"")
	if n < 0 {
		n = len(p.rest)
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// value takes a token or a quoted string.
func (p *headerParser) value() string {
	if !p.take('"') {
		return p.token()
	}
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	p.rest = ""
	return b.String()
}
