package streamhttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrTokenInvalid is wrapped by a TokenVerifier's error when the token itself is at fault.
var ErrTokenInvalid = errors.New("the token is not valid")

// wellKnown is the path of a resource server's metadata (RFC 9728, 3.1); the resource's own path may follow.
const wellKnown = "/.well-known/oauth-protected-resource"

// guard checks tokens.
type guard struct {
	bearer   [][sha256.Size]byte // hashes, for comparisons in constant time
	oauth    *OAuth
	verifier TokenVerifier
	metadata []byte   // of the protected resource, JSON
	at       []string // where it is found
	url      string   // where clients find it
}

func newGuard(bearer []string, oauth *OAuth) guard {
	var g guard
	for _, token := range bearer {
		g.bearer = append(g.bearer, sha256.Sum256([]byte(token)))
	}
	if oauth == nil {
		return g
	}
	g.oauth, g.verifier = oauth, oauth.Verifier
	if g.verifier == nil {
		g.verifier = NewJWTVerifier(oauth.Issuer, oauth.Resource, nil)
	}
	g.at, g.url = []string{wellKnown}, oauth.Resource
	if u, err := url.Parse(oauth.Resource); err == nil {
		if own := strings.TrimSuffix(u.EscapedPath(), "/"); own != "" {
			g.at = append(g.at, wellKnown+strings.TrimSuffix(u.Path, "/"))
		}
		u.Path, u.RawPath = wellKnown+strings.TrimSuffix(u.Path, "/"), ""
		g.url = u.String()
	}
	g.metadata = describeResource(oauth)
	return g
}

// describeResource is the metadata document of RFC 9728.
func describeResource(oauth *OAuth) []byte {
	doc, _ := json.Marshal(struct { // strings only: no error
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported,omitempty"`
	}{oauth.Resource, []string{oauth.Issuer}, []string{"header"}, oauth.Scopes})
	return doc
}

// describes reports whether the metadata is found at a path.
func (g *guard) describes(path string) bool { return slices.Contains(g.at, path) }

func (g *guard) describe(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*") // public, and clients in browsers need it before they have a token
	writeJSON(w, http.StatusOK, g.metadata)
}

// open reports whether no token is required.
func (g *guard) open() bool { return len(g.bearer) == 0 && g.oauth == nil }

// admit authenticates the client. false: the request was answered.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (Claims, bool) {
	if g.open() {
		return Claims{}, true
	}
	token, found := bearerToken(r)
	if !found {
		g.challenge(w, http.StatusUnauthorized, "", "a bearer token is needed")
		return Claims{}, false
	}
	if n := g.static(token); n > 0 {
		return Claims{Subject: staticSubject + strconv.Itoa(n), whole: staticSubject + token}, true
	}
	if g.oauth == nil {
		g.challenge(w, http.StatusUnauthorized, "invalid_token", "the token is not valid")
		return Claims{}, false
	}
	claims, err := g.verifier.VerifyToken(r.Context(), token)
	switch {
	case errors.Is(err, ErrTokenInvalid):
		g.challenge(w, http.StatusUnauthorized, "invalid_token", "the token is not valid")
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, nil, refusal{code: codeInternal, text: "tokens cannot be checked now", retry: true})
	case !hasScopes(claims.Scopes, g.oauth.Scopes):
		g.challenge(w, http.StatusForbidden, "insufficient_scope", "the token lacks a scope")
	default:
		claims.Subject = tokenSubject + claims.Subject
		claims.whole = claims.Subject + " of " + g.oauth.Issuer
		return claims, true
	}
	return Claims{}, false
}

// Prefixes of subjects, so that an authorization server can give nobody the name of a static token.
const (
	staticSubject = "bearer:"
	tokenSubject  = "sub:"
)

// static returns the number of the first matching static token, from 1, or 0. All are compared.
func (g *guard) static(token string) int {
	sum := sha256.Sum256([]byte(token))
	match := 0
	for i := range g.bearer {
		first := subtle.ConstantTimeEq(int32(match), 0)
		match |= subtle.ConstantTimeCompare(sum[:], g.bearer[i][:]) * first * (i + 1)
	}
	return match
}

// bearerToken reads the only Authorization header. Tokens in the URL are refused (OAuth 2.1).
func bearerToken(r *http.Request) (string, bool) {
	fields := r.Header["Authorization"]
	if len(fields) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func hasScopes(has, needed []string) bool {
	for _, scope := range needed {
		if !slices.Contains(has, scope) {
			return false
		}
	}
	return true
}

// challenge tells the client what is missing and where to get it (RFC 6750, RFC 9728).
func (g *guard) challenge(w http.ResponseWriter, status int, code, text string) {
	var params []string
	if code != "" {
		params = append(params, `error="`+code+`"`, `error_description="`+text+`"`)
	}
	if g.oauth != nil {
		params = append(params, `resource_metadata="`+g.url+`"`)
		if len(g.oauth.Scopes) > 0 {
			params = append(params, `scope="`+strings.Join(g.oauth.Scopes, " ")+`"`)
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
	refuse(w, status, nil, refusal{code: codeInvalidRequest, text: text})
}
