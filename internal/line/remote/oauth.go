package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// OAuthOptions are what is configured about the authorization at one server. The zero value registers itself where the server
// allows that, and is not interactive.
type OAuthOptions struct {
	// Endpoint is the URL of the MCP server. What it names is only asked where that is no way into this machine or a private
	// network for it: see [OAuth].
	Endpoint string
	// ClientID and ClientSecret were given out by the authorization server beforehand. "": registration as the server offers it.
	ClientID, ClientSecret string
	// Issuer is the only authorization server that is asked. "": the one that the server names, with ClientID that of the first
	// login from then on; required with ClientSecret.
	Issuer string
	// Scopes to ask for. nil: those that the server asks for.
	Scopes []string
	// Resource is what the token is to be good for (RFC 8707). "": what the server's metadata says.
	Resource string
	// RedirectPort is the loopback port of the redirect, for servers that compare it. 0: any free one.
	RedirectPort int

	// Authorize shows the user a page, as by opening a browser. It returns at once; the answer comes to a loopback port. ctx ends when the
	// authorization has succeeded or failed. nil: not interactive, what needs the user is an error that names Login.
	Authorize func(ctx context.Context, page Page) error
	// Login is the command that does it interactively, for that error.
	Login string
	// Patience is how long the user may take. 0: 5 minutes.
	Patience time.Duration

	// Store keeps the grant from run to run. nil: it is forgotten.
	Store GrantStore
	// Transport carries the requests to authorization servers. nil: one of its own, which knows the proxy settings of the
	// environment and connects to no address that Endpoint has no business with.
	Transport http.RoundTripper
}

// Page is where the user is asked for consent.
type Page struct {
	URL string
	// Arrived takes the address at which a browser on another machine ended, as its user copies it. The error says why that is not the
	// address that the login ends at; the login waits on.
	Arrived func(address string) error
}

// defaultPatience is how long a user may take to consent if nothing else is said.
const defaultPatience = 5 * time.Minute

// Grant is what an authorization server gave us, as JSON in a [GrantStore]. It is secret.
type Grant struct {
	Issuer       string    `json:"issuer,omitempty"`
	TokenURL     string    `json:"token_endpoint,omitempty"`
	Resource     string    `json:"resource,omitempty"`
	ClientID     string    `json:"client_id,omitempty"`
	ClientSecret string    `json:"client_secret,omitempty"`
	ClientAuth   string    `json:"client_auth,omitempty"` // as in token_endpoint_auth_methods_supported
	RedirectURI  string    `json:"redirect_uri,omitempty"`
	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Obtained     time.Time `json:"obtained,omitzero"` // when the access token was
	Expiry       time.Time `json:"expiry,omitzero"`   // of the access token; zero: not told
	Wanted       []string  `json:"wanted,omitempty"`  // scopes that the server has asked for since
	Scopes       []string  `json:"scopes,omitempty"`
}

// GrantStore keeps the grant of one server, for all processes that use it. Its methods are called by one goroutine at a time.
type GrantStore interface {
	// Load returns the zero Grant if there is none.
	Load() (Grant, error)
	Save(Grant) error
	// Lock waits until no other process has the lock. Between a Load and the Save that depends on it the lock is held, since a
	// refresh token may be used once only.
	Lock(ctx context.Context) (unlock func(), err error)
}

// OAuth holds the authorization at one server: it gets tokens, renews them and asks the user where that is configured. It is shared by
// all connections to that server and may be used from any goroutine. It starts one while a user is being asked or a token renewed:
// both are finished even if nobody waits for them any more, because the old refresh token is used up by then, and the user has a page open.
//
// The MCP server names its authorization server, and that one its endpoints, so both may try to have us send requests to
// addresses that they cannot reach themselves. Only https is used, and http on loopback if the MCP server is on loopback itself.
// Loopback is connected to only then; private addresses only if every address of the MCP server's own host is private;
// link-local ones never.
type OAuth struct {
	opts     OAuthOptions
	endpoint *url.URL
	client   *http.Client
	asking   atomic.Bool // the user is being asked
	vain     vainConsents
	turn     chan struct{} // holds one token: its holder owns what follows

	grant     Grant
	loaded    bool
	forgotten bool // the authorization server does not know the grant's client any more
	unsaved   unsaved
}

// NewOAuth prepares authorization; nothing is loaded or asked yet.
func NewOAuth(opts OAuthOptions) *OAuth {
	endpoint, err := url.Parse(opts.Endpoint)
	if err != nil {
		endpoint = &url.URL{} // the connection tells
	}
	transport := opts.Transport
	if transport == nil {
		transport = newAddressGuard(endpoint).transport()
	}
	client := &http.Client{Transport: transport, CheckRedirect: sameOriginOnly, Timeout: redeemFor}
	return &OAuth{opts: opts, endpoint: endpoint, client: client, turn: make(chan struct{}, 1)}
}

// Login authorizes at the server now, whatever is known, as a client that is registered anew, and pins the authorization server that it
// names today: for the command that [OAuthOptions.Login] names. The error says what failed.
func (o *OAuth) Login(ctx context.Context) error {
	if o.opts.Authorize == nil {
		return errors.New("there is no user to ask")
	}
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	if err := o.load(); err != nil {
		return err
	}
	asked := o.ask(ctx)
	asked.scopes = append(asked.scopes, o.grant.Wanted...)
	return o.authorize(ctx, asked, true)
}

// ask asks the server without a token, to hear where its metadata is and what it wants. One that cannot be asked is looked for
// at the usual places.
func (o *OAuth) ask(ctx context.Context) challenge {
	body := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.endpoint.String(), body)
	if err != nil {
		return challenge{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", userAgent)
	// The configured URL may be anywhere: no guard.
	client := newClient(Options{Transport: o.opts.Transport}.withDefaults())
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return challenge{}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return challenge{}
	}
	return challengeOf(resp)
}

func (o *OAuth) lock(ctx context.Context) error {
	select {
	case o.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *OAuth) unlock() { <-o.turn }

// busy reports whether a token is being got just now, or the user asked. Of nil, too.
func (o *OAuth) busy() bool { return o != nil && len(o.turn) > 0 }

// load reads the stored grant once.
func (o *OAuth) load() error {
	if o.loaded {
		return nil
	}
	return o.reload()
}

// reload reads the grant that is stored now. One of another authorization server than the configured one is none.
func (o *OAuth) reload() error {
	if o.opts.Store == nil {
		return nil
	}
	g, err := o.opts.Store.Load()
	if err != nil {
		return fmt.Errorf("load the stored authorization: %w", err)
	}
	if o.opts.Issuer != "" && !sameURI(g.Issuer, o.opts.Issuer) {
		g = Grant{}
	}
	if o.unsaved.used != "" && o.unsaved.used == g.RefreshToken {
		return nil // what is known is newer
	}
	o.grant, o.loaded, o.unsaved = g, true, unsaved{}
	return nil
}

// hold keeps other processes from changing the stored grant until release is called.
func (o *OAuth) hold(ctx context.Context) (release func(), err error) {
	if o.opts.Store == nil {
		return func() {}, nil
	}
	release, err = o.opts.Store.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the stored authorization: %w", err)
	}
	return release, nil
}

// keep stores what was granted. The store is held.
func (o *OAuth) keep(g Grant) error {
	o.grant, o.forgotten = g, false
	if o.opts.Store == nil {
		return nil
	}
	if err := o.opts.Store.Save(g); err != nil {
		return fmt.Errorf("store the authorization: %w", err)
	}
	o.unsaved = unsaved{}
	return nil
}

// token returns the access token to be sent, "" if there is none: then the server says what it wants. With a token, an error is for
// the log only.
func (o *OAuth) token(ctx context.Context) (string, error) {
	if err := o.lock(ctx); err != nil {
		return "", err
	}
	if err := o.load(); err != nil {
		o.unlock()
		return "", err
	}
	g := o.grant
	if !g.due(time.Now()) {
		err := o.saveAgain(ctx)
		token := o.grant.AccessToken
		o.unlock()
		return token, err
	}
	next, err := o.finish(ctx, g.AccessToken, func(ctx context.Context) error { return o.renew(ctx, g.AccessToken) })
	if next == "" && g.better("", time.Now()) {
		return g.AccessToken, nil // still good; the next request tries again
	}
	return next, err
}

// answerChallenge gets the token that the server asks for in its response to a request with the token used. Without an error the
// request is worth another try.
func (o *OAuth) answerChallenge(ctx context.Context, used string, resp *http.Response) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	if o.grant.AccessToken == used { // else somebody has got another one meanwhile
		if err := o.reload(); err != nil {
			o.unlock()
			return err
		}
	}
	if o.grant.better(used, time.Now()) {
		o.unlock()
		return nil
	}
	_, err := o.finish(ctx, used, func(ctx context.Context) error { // one turn for all of it: who waits for the next one finds a token
		if resp.StatusCode == http.StatusUnauthorized {
			if err := o.renew(ctx, used); err != nil || o.grant.better(used, time.Now()) {
				return err
			}
		}
		asked := challengeOf(resp)
		if o.opts.Authorize == nil {
			return o.notInteractive(ctx, asked)
		}
		if o.vain.enough(asked) {
			what := "a token"
			if len(asked.scopes) > 0 {
				what = strings.Join(asked.scopes, " ")
			}
			return fmt.Errorf("the server has been granted %s, and refuses still: only those who run it can say what it wants", what)
		}
		err := o.authorize(ctx, asked, false)
		if err == nil {
			o.vain.granted(asked)
		}
		return err
	})
	return err
}

// finish does what is not to be broken off, and waits for it as long as ctx lets it. It returns the access token that may be used in place
// of used then, "" if there is none. It is called with the turn and gives it back.
func (o *OAuth) finish(ctx context.Context, used string, do func(ctx context.Context) error) (string, error) {
	type end struct {
		token string
		err   error
	}
	came := make(chan end, 1)
	go func() {
		defer o.unlock()
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		e := end{err: do(own)}
		if o.grant.better(used, time.Now()) {
			e.token = o.grant.AccessToken
		}
		came <- e
	}()
	select {
	case e := <-came:
		return e.token, e.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// WantsLogin begins what is said of a server that waits for a login; behind it stands ": run " and the command.
const WantsLogin = "the server wants a login"

// Waiting says what the user is asked to do just now; "": nothing. Of nil, too.
func (o *OAuth) Waiting() string {
	if o == nil || !o.asking.Load() {
		return ""
	}
	return o.wanted()
}

// wanted says that the user is needed, and what to do.
func (o *OAuth) wanted() string {
	if o.opts.Login == "" {
		return WantsLogin
	}
	return WantsLogin + ": run " + o.opts.Login
}

// authorize gets a grant from the beginning: who may give it, who we are to them, and what they say. With anew the
// user wants it from whichever authorization server the server names.
func (o *OAuth) authorize(ctx context.Context, asked challenge, anew bool) error {
	d, err := o.discover(ctx, asked)
	if err != nil {
		return err
	}
	if err := o.checkIssuer(d.server.Issuer, anew); err != nil {
		return err
	}
	g := Grant{Issuer: d.server.Issuer, TokenURL: d.server.TokenEndpoint, Resource: cmp.Or(o.opts.Resource, d.resource)}
	if sameURI(o.grant.Issuer, g.Issuer) { // what was registered or granted elsewhere is of no use here
		g.ClientID, g.ClientSecret, g.ClientAuth, g.RedirectURI = o.grant.ClientID, o.grant.ClientSecret, o.grant.ClientAuth, o.grant.RedirectURI
		g.Scopes = o.grant.Scopes
	}
	if o.forgotten {
		g.ClientID, g.ClientSecret, g.ClientAuth = "", "", ""
	}
	scopes := o.scopes(d, asked, g.Scopes)
	g, err = o.userGrant(ctx, g, d.server, scopes, anew)
	if errors.Is(err, errGrantedElsewhere) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(g.Scopes) == 0 {
		g.Scopes = scopes // the server names them only if they differ
	}
	return o.replace(ctx, g)
}

// checkIssuer refuses an authorization server that is not the configured one, nor that of the first login for a client that
// was given its id beforehand: it would get what another one has given out. Without such an id we register anew, nothing of
// the old registration is shown, and the user is asked in the browser (SEP-2352).
func (o *OAuth) checkIssuer(issuer string, anew bool) error {
	switch pinned := o.grant.Issuer; {
	case o.opts.Issuer != "" && !sameURI(o.opts.Issuer, issuer):
		return fmt.Errorf("the server wants tokens of %s, the configured issuer is %s: nothing was sent to the former", issuer, o.opts.Issuer)
	case o.opts.Issuer != "":
	case o.opts.ClientSecret != "":
		return errors.New("a client secret is sent only to the authorization server that issued it: configure its issuer, too")
	case !anew && o.opts.ClientID != "" && pinned != "" && !sameURI(pinned, issuer):
		hint := ""
		if o.opts.Login != "" {
			hint = "; if that is right, run " + o.opts.Login
		}
		return fmt.Errorf("the server wants tokens of %s now, before it was %s%s", issuer, pinned, hint)
	}
	return nil
}

// replace stores a new grant in the place of whatever is stored.
func (o *OAuth) replace(ctx context.Context, g Grant) error {
	release, err := o.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := o.reload(); err != nil {
		return err
	}
	if g.RefreshToken == "" && sameURI(o.grant.Issuer, g.Issuer) && o.grant.ClientID == g.ClientID {
		g.RefreshToken = o.grant.RefreshToken
	}
	return o.keep(g)
}

// notInteractive says what the user can do, and keeps for that what the server wants.
func (o *OAuth) notInteractive(ctx context.Context, asked challenge) error {
	if len(asked.scopes) > 0 && !slices.Equal(o.grant.Wanted, asked.scopes) {
		release, err := o.hold(ctx)
		if err != nil {
			return err
		}
		defer release()
		if err := o.reload(); err != nil {
			return err
		}
		g := o.grant
		g.Wanted = asked.scopes
		if err := o.keep(g); err != nil {
			return err
		}
	}
	if o.opts.Login == "" {
		return errors.New(WantsLogin + ", and there is no user to ask")
	}
	return errors.New(o.wanted())
}

// scopes are those to be asked for: what the configuration says, or what the server wants now, or what it knows; with what was granted
// before, so that a step up loses nothing.
func (o *OAuth) scopes(d discovered, asked challenge, granted []string) []string {
	var want []string
	switch {
	case len(o.opts.Scopes) > 0:
		want = append(slices.Clone(o.opts.Scopes), asked.scopes...)
	case len(asked.scopes) > 0:
		want = slices.Clone(asked.scopes)
	default:
		want = slices.Clone(d.scopes)
	}
	want = append(want, granted...)
	if len(want) > 0 && slices.Contains(d.server.Scopes, offline) { // alone it would take the place of what a server gives by itself
		want = append(want, offline)
	}
	var once []string
	for _, s := range want {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// offline is the scope that asks for a refresh token (OpenID Connect).
const offline = "offline_access"
