package streamhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// wellKnown is the path of a resource server's metadata (RFC 9728, 3.1); the resource's own path may follow.
const wellKnown = "/.well-known/oauth-protected-resource"

// guard checks tokens.
type guard struct {
	rights   atomic.Pointer[rights]
	open     bool // no token is required
	oauth    *OAuth
	verifier *verifier // of oauth
	at       []string  // where the metadata of the protected resource are found
	url      string    // where clients find them
}

func (g *guard) init(bearer []string, oauth *OAuth, views []View) {
	r := newRights(bearer, views)
	g.rights.Store(r)
	g.open = len(r.tokens) == 0 && oauth == nil
	if oauth == nil {
		return
	}
	g.oauth, g.verifier = oauth, newVerifier(oauth.Issuer, oauth.Resource)
	g.at, g.url = []string{wellKnown}, oauth.Resource
	if u, err := url.Parse(oauth.Resource); err == nil {
		u.Path, u.RawPath = wellKnown+strings.TrimSuffix(u.Path, "/"), ""
		g.at, g.url = append(g.at, u.Path), u.String()
	}
}

// below is the URL of a view, below that of the whole endpoint, which is the view "".
func below(whole, view string) string {
	if view == "" {
		return whole
	}
	return strings.TrimSuffix(whole, "/") + "/" + view
}

// describes returns the view whose metadata is found at a path, "" for the whole endpoint. A client may have read them
// before it has a token, so that they are the same whether there is such a view or not.
func (g *guard) describes(path string) (view string, ok bool) {
	path = strings.TrimSuffix(path, "/") // of a client whose URL of the endpoint has it
	if len(g.at) == 0 || slices.Contains(g.at, path) {
		return "", len(g.at) > 0
	}
	view, ok = strings.CutPrefix(path, g.at[len(g.at)-1]+"/")
	return view, ok && view != "" && !strings.Contains(view, "/")
}

// describe answers with the metadata document of RFC 9728, of the whole endpoint or of a view.
func (g *guard) describe(w http.ResponseWriter, r *http.Request, view string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*") // public, and clients in browsers need it before they have a token
	doc, _ := json.Marshal(struct {                    // strings only: no error
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported,omitempty"`
	}{below(g.oauth.Resource, view), []string{g.oauth.Issuer}, []string{"header"}, g.oauth.Scopes})
	writeJSON(w, http.StatusOK, doc)
}

// admit authenticates a client that asks for a view, or for everything (""). false: the request was answered.
func (g *guard) admit(w http.ResponseWriter, r *http.Request, rights *rights, view string) (caller, bool) {
	if g.open {
		return caller{}, true
	}
	token, found := bearerToken(r)
	if !found {
		g.challenge(w, view, http.StatusUnauthorized, "", "a bearer token is needed")
		return caller{}, false
	}
	if known, ok := rights.static(token); ok {
		return caller{Claims: Claims{Subject: known.subject}, Whole: staticSubject + token}, true
	}
	if g.oauth == nil {
		g.challenge(w, view, http.StatusUnauthorized, "invalid_token", "the token is not valid")
		return caller{}, false
	}
	claims, err := g.verifier.verify(r.Context(), token)
	lacks := func(scope string) bool { return !slices.Contains(claims.Scopes, scope) }
	switch {
	case errors.Is(err, errTokenInvalid):
		g.challenge(w, view, http.StatusUnauthorized, "invalid_token", "the token is not valid")
	case err != nil:
		refuse(w, nil, refusal{status: http.StatusServiceUnavailable, text: "tokens cannot be checked now"})
	case claims.Audience != nil && !slices.Contains(claims.Audience, below(g.oauth.Resource, view)):
		g.challenge(w, view, http.StatusUnauthorized, "invalid_token", "the token is not valid here")
	case slices.ContainsFunc(g.oauth.Scopes, lacks):
		g.challenge(w, view, http.StatusForbidden, "insufficient_scope", "the token lacks a scope")
	default:
		claims.Subject = tokenSubject + claims.Subject
		return caller{Claims: claims, Whole: claims.Subject + " of " + g.oauth.Issuer}, true
	}
	return caller{}, false
}

// Prefixes of subjects, so that an authorization server can give nobody the name of a static token.
const (
	staticSubject = "bearer:"
	tokenSubject  = "sub:"
)

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

// challenge tells the client what is missing and where to get it (RFC 6750, RFC 9728).
func (g *guard) challenge(w http.ResponseWriter, view string, status int, code, text string) {
	var params []string
	if code != "" {
		params = append(params, `error="`+code+`"`, `error_description="`+text+`"`)
	}
	if g.oauth != nil {
		params = append(params, `resource_metadata="`+below(g.url, url.PathEscape(view))+`"`)
		if len(g.oauth.Scopes) > 0 {
			params = append(params, `scope="`+strings.Join(g.oauth.Scopes, " ")+`"`)
		}
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(params, ", ")))
	refuse(w, nil, refusal{status: status, text: text})
}
