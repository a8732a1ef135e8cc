package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// redirectPath is the path of the redirect.
const redirectPath = "/callback"

// storeLook is how often it is looked whether the user has logged in by another process, while this one asks.
const storeLook = 500 * time.Millisecond

// errGrantedElsewhere is the end of the asking because another process has been granted what was asked for.
var errGrantedElsewhere = errors.New("authorized by another process")

// userGrant asks the user: the authorization code flow with PKCE, the answer coming to a loopback port (RFC 8252). Unless it is to be
// anew, what another process is granted meanwhile will do.
func (o *OAuth) userGrant(ctx context.Context, g Grant, server authServer, scopes []string, anew bool) (Grant, error) {
	// Metadata that say nothing of PKCE, such as Entra ID's, are of servers that know it, as a rule.
	if server.ChallengeMethods != nil && !slices.Contains(server.ChallengeMethods, "S256") {
		return g, fmt.Errorf("%s does not know PKCE with S256, without which a code could be stolen", server.Issuer)
	}
	if server.AuthorizationEndpoint == "" {
		return g, fmt.Errorf("the metadata of %s names no authorization endpoint", server.Issuer)
	}
	listener, err := o.listen(g.RedirectURI)
	if err != nil {
		return g, fmt.Errorf("wait for the browser: %w", err)
	}
	defer listener.Close()
	if anew && o.opts.ClientID == "" && server.RegistrationEndpoint != "" {
		g.ClientID, g.ClientSecret, g.ClientAuth = "", "", "" // it may have forgotten them, and says so to the user alone
	}
	// A client that somebody has registered by hand has the name localhost in its redirect, as a rule: many servers take no address there.
	// Ours has the address, which no name service can move (RFC 8252, 7.3).
	address := "http://" + listener.Addr().String() + redirectPath
	if o.opts.ClientID != "" {
		address = byName(address)
	}
	g, err = o.identify(ctx, g, server, address, scopes)
	if err != nil {
		return g, err
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	client := oauth2.Config{
		ClientID: g.ClientID, RedirectURL: g.RedirectURI, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: server.AuthorizationEndpoint},
	}
	more := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", g.Resource)}
	if slices.Contains(scopes, offline) && !strings.Contains(server.AuthorizationEndpoint, "prompt=") { // Entra ID refuses two
		more = append(more, oauth2.ApprovalForce) // otherwise OpenID providers give no refresh token
	}
	check := redirectCheck{state: state, issuer: server.CallsItself, told: server.TellsIssuer}
	code, err := o.askUser(ctx, listener, client.AuthCodeURL(state, more...), check, anew)
	if err != nil {
		return g, err
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {g.RedirectURI}, "code_verifier": {verifier},
	}
	return o.redeem(ctx, g, form)
}

// listen takes the loopback port of the redirect: the configured one, the one registered before, or any.
func (o *OAuth) listen(before string) (net.Listener, error) {
	if o.opts.RedirectPort != 0 {
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.opts.RedirectPort)))
	}
	if u, err := url.Parse(before); err == nil && u.Port() != "" {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", u.Port())); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// byName is a redirect to loopback by its name.
func byName(redirect string) string {
	return strings.Replace(redirect, "//127.0.0.1:", "//localhost:", 1)
}

// askUser shows the page and waits for the redirect with the code: by the browser itself, or as an address that the user has copied.
func (o *OAuth) askUser(ctx context.Context, listener net.Listener, page string, check redirectCheck, anew bool) (string, error) {
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.opts.Patience, defaultPatience))
	defer cancel()
	o.asking.Store(true)
	defer o.asking.Store(false)
	came := make(chan redirect, 1)
	server := &http.Server{Handler: check.handler(came), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends when it is closed below
	}()
	defer func() { <-served }()
	defer func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(soon) != nil { // the browser should get its page
			_ = server.Close()
		}
	}()
	arrived := func(address string) error {
		address, _, _ = strings.Cut(address, "#")
		_, query, _ := strings.Cut(address, "?")
		q, err := url.ParseQuery(query)
		if err != nil || !q.Has("code") && !q.Has("error") || errors.Is(check.take(q, came), errForeignRedirect) {
			return errForeignRedirect
		}
		return nil
	}
	if err := o.opts.Authorize(asked, Page{URL: page, Arrived: arrived}); err != nil {
		return "", fmt.Errorf("show the user %s: %w", page, err)
	}
	look := time.Tick(storeLook)
	for {
		select {
		case r := <-came:
			return r.code, r.err
		case <-look:
			if !anew && o.grantedElsewhere() {
				return "", errGrantedElsewhere
			}
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the user's consent: %w", ctx.Err())
		}
	}
}

// grantedElsewhere takes up what another process has been granted since, if there is something.
func (o *OAuth) grantedElsewhere() bool {
	before := o.grant.AccessToken
	return o.reload() == nil && o.grant.better(before, time.Now()) // a store that cannot be read is told when it is needed
}

// redirect is what the browser comes back with.
type redirect struct {
	code string
	err  error
}

// handler takes the browser's redirect, and shows the user how it went.
func (r redirectCheck) handler(came chan<- redirect) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+redirectPath, func(w http.ResponseWriter, req *http.Request) {
		err := r.take(req.URL.Query(), came)
		if errors.Is(err, errForeignRedirect) {
			http.Error(w, "This is not the page that was asked for.", http.StatusBadRequest)
			return
		}
		text := "Authorized. You can close this page.\n"
		if err != nil {
			text = "Not authorized. The program you came from says why.\n"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text)) // a browser that is gone need not be told
	})
	return mux
}

// take hands the redirect with these parameters to who waits for it, unless it belongs to another login. The error is what it brings.
func (r redirectCheck) take(q url.Values, came chan<- redirect) error {
	code, err := r.code(q)
	if errors.Is(err, errForeignRedirect) {
		return err
	}
	select {
	case came <- redirect{code, err}:
	default:
	}
	return err
}

// redirectCheck is what a redirect must match before its content is used.
type redirectCheck struct {
	state  string
	issuer string
	told   bool // the server says that its redirects name it
}

// isFrom compares letter by letter with the issuer of the metadata (RFC 9207, 2.4). Those of Entra ID for all tenants leave the tenant open.
func (r redirectCheck) isFrom(issuer string) bool {
	before, after, open := strings.Cut(r.issuer, "{tenantid}")
	if !open {
		return issuer == r.issuer
	}
	tenant := strings.TrimSuffix(strings.TrimPrefix(issuer, before), after)
	return issuer == before+tenant+after && !strings.Contains(tenant, "/")
}

// errForeignRedirect is a redirect with another state than ours.
var errForeignRedirect = errors.New("this login ends at another address")

// code extracts the code from a redirect (RFC 6749, 4.1.2; RFC 9207).
func (r redirectCheck) code(q url.Values) (string, error) {
	if q.Get("state") != r.state {
		return "", errForeignRedirect
	}
	switch {
	case q.Has("iss") && !r.isFrom(q.Get("iss")):
		return "", errors.New("the redirect names another authorization server than was asked (RFC 9207)")
	case r.told && !q.Has("iss"):
		return "", errors.New("the redirect does not name its authorization server, though that says it would (RFC 9207)")
	case q.Get("error") != "":
		return "", fmt.Errorf("not authorized: %w", tokenRefusal{Code: q.Get("error"), Description: q.Get("error_description")})
	case q.Get("code") == "":
		return "", errors.New("the redirect brings no code")
	}
	return q.Get("code"), nil
}
