package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// OAuthOptions are what is configured about the authorization at one server. The zero value registers itself where the server
// allows that, and is not interactive.
type OAuthOptions struct {
	// ClientID and ClientSecret were given out by the authorization server beforehand. "": registration as the server offers it.
	ClientID, ClientSecret string
	// Issuer is the authorization server that ClientID belongs to. "": whichever the server names.
	Issuer string
	// Scopes to ask for. nil: those that the server asks for.
	Scopes []string
	// Resource is what the token is to be good for (RFC 8707). "": what the server's metadata says.
	Resource string
	// ClientCredentials uses the grant of that name: a service's own identity, no user.
	ClientCredentials bool
	// MetadataURL is the https URL of a client id metadata document. "": none.
	MetadataURL string
	// ClientName is shown to the user by authorization servers that let clients register. "": outlive.
	ClientName string
	// RedirectPort is the loopback port of the redirect, for servers that compare it. 0: any free one.
	RedirectPort int

	// Authorize shows the user a page, as by opening a browser. It returns at once; the answer comes to a loopback port. nil: not
	// interactive, what needs the user is an error that names Login.
	Authorize func(ctx context.Context, url string) error
	// Login is the command that does it interactively, for that error.
	Login string
	// Patience is how long the user may take. 0: 5 minutes.
	Patience time.Duration

	// Store keeps the grant from run to run. nil: it is forgotten.
	Store GrantStore
	// Transport carries the requests to authorization servers. nil: http.DefaultTransport.
	Transport http.RoundTripper
}

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
	Expiry       time.Time `json:"expiry,omitzero"`  // of the access token; zero: not told
	Wanted       []string  `json:"wanted,omitempty"` // scopes that the server has asked for since
	Scopes       []string  `json:"scopes,omitempty"`
}

// GrantStore keeps the grant of one server. Its methods are called by one goroutine at a time.
type GrantStore interface {
	// Load returns the zero Grant if there is none.
	Load() (Grant, error)
	Save(Grant) error
}

// OAuth holds the authorization at one server: it gets tokens, renews them and asks the user where that is configured. It is shared by
// all connections to that server, may be used from any goroutine and starts none but while a user is being asked.
type OAuth struct {
	opts   OAuthOptions
	client *http.Client
	turn   chan struct{} // holds one token: whoever has it owns what follows

	grant  Grant
	loaded bool
}

// NewOAuth prepares authorization; nothing is loaded or asked yet.
func NewOAuth(opts OAuthOptions) *OAuth {
	if opts.Patience == 0 {
		opts.Patience = 5 * time.Minute
	}
	if opts.ClientName == "" {
		opts.ClientName = "outlive"
	}
	client := &http.Client{Transport: opts.Transport, CheckRedirect: sameOriginOnly, Timeout: 30 * time.Second}
	return &OAuth{opts: opts, client: client, turn: make(chan struct{}, 1)}
}

// Login authorizes at the server at endpoint now, whatever is known: for the command that [OAuthOptions.Login] names. The error says
// what failed.
func (o *OAuth) Login(ctx context.Context, endpoint string) error {
	to, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	if err := o.load(); err != nil {
		return err
	}
	asked := o.ask(ctx, to)
	asked.scopes = append(asked.scopes, o.grant.Wanted...)
	return o.authorize(ctx, to, asked)
}

// ask asks the server without a token, to hear where its metadata is and what it wants. One that cannot be asked is looked for
// at the usual places.
func (o *OAuth) ask(ctx context.Context, endpoint *url.URL) challenge {
	body := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), body)
	if err != nil {
		return challenge{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := o.client.Do(req)
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

// load reads the stored grant once.
func (o *OAuth) load() error {
	if o.loaded || o.opts.Store == nil {
		return nil
	}
	g, err := o.opts.Store.Load()
	if err != nil {
		return fmt.Errorf("load the stored authorization: %w", err)
	}
	o.grant, o.loaded = g, true
	return nil
}

// keep stores what was granted.
func (o *OAuth) keep(g Grant) error {
	o.grant = g
	if o.opts.Store == nil {
		return nil
	}
	if err := o.opts.Store.Save(g); err != nil {
		return fmt.Errorf("store the authorization: %w", err)
	}
	return nil
}

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// token returns the access token to be sent, "" if there is none: then the server says what it wants.
func (o *OAuth) token(ctx context.Context) (string, error) {
	if err := o.lock(ctx); err != nil {
		return "", err
	}
	defer o.unlock()
	if err := o.load(); err != nil {
		return "", err
	}
	if o.grant.Expiry.IsZero() || time.Until(o.grant.Expiry) > early {
		return o.grant.AccessToken, nil
	}
	if err := o.renew(ctx); err != nil {
		return "", err
	}
	return o.grant.AccessToken, nil
}

// renew gets another access token without the user. Without an error and without a token it takes another authorization.
func (o *OAuth) renew(ctx context.Context) error {
	if o.adopt() {
		return nil
	}
	g := o.grant
	g.AccessToken, g.Expiry = "", time.Time{}
	if g.RefreshToken == "" || g.TokenURL == "" {
		return o.keep(g)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	if len(g.Scopes) > 0 {
		form.Set("scope", joinScopes(g.Scopes))
	}
	next, err := o.redeem(ctx, g, form)
	if refused := (tokenRefusal{}); errors.As(err, &refused) {
		g.RefreshToken = ""
		return o.keep(g)
	}
	if err != nil {
		return err
	}
	return o.keep(next)
}

// adopt takes over a token that another process has stored meanwhile: a refresh token may be used once only.
func (o *OAuth) adopt() bool {
	if o.opts.Store == nil {
		return false
	}
	stored, err := o.opts.Store.Load()
	if err != nil || stored.AccessToken == "" || stored.AccessToken == o.grant.AccessToken {
		return false
	}
	if !stored.Expiry.IsZero() && time.Until(stored.Expiry) <= early {
		return false
	}
	o.grant = stored
	return true
}

// answerChallenge gets the token that a server asks for in its response to a request with the token used. Without an error the request
// is worth another try.
func (o *OAuth) answerChallenge(ctx context.Context, endpoint *url.URL, used string, resp *http.Response) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	if o.grant.AccessToken != used && o.grant.AccessToken != "" {
		return nil // somebody else has got one meanwhile
	}
	if resp.StatusCode == http.StatusUnauthorized && o.adopt() {
		return nil
	}
	asked := challengeOf(resp)
	if resp.StatusCode == http.StatusUnauthorized && used != "" {
		if err := o.renew(ctx); err != nil {
			return err
		}
		if o.grant.AccessToken != "" {
			return nil
		}
	}
	return o.authorize(ctx, endpoint, asked)
}

// authorize gets a grant from the beginning: who may give it, who we are to them, and what they say.
func (o *OAuth) authorize(ctx context.Context, endpoint *url.URL, asked challenge) error {
	if !o.opts.ClientCredentials && o.opts.Authorize == nil {
		return o.notInteractive(asked)
	}
	d, err := o.discover(ctx, endpoint, asked)
	if err != nil {
		return err
	}
	if o.opts.ClientID != "" && o.opts.Issuer != "" && o.opts.Issuer != d.server.Issuer {
		return fmt.Errorf("the server wants tokens of %s, the configured client belongs to %s", d.server.Issuer, o.opts.Issuer)
	}
	g := Grant{Issuer: d.server.Issuer, TokenURL: d.server.TokenEndpoint, Resource: d.resource}
	if o.opts.Resource != "" {
		g.Resource = o.opts.Resource
	}
	if o.grant.Issuer == g.Issuer { // what was registered or granted elsewhere is of no use here
		g.ClientID, g.ClientSecret, g.ClientAuth, g.RedirectURI = o.grant.ClientID, o.grant.ClientSecret, o.grant.ClientAuth, o.grant.RedirectURI
		g.Scopes, g.RefreshToken = o.grant.Scopes, o.grant.RefreshToken
	}
	scopes := o.scopes(d, asked, g.Scopes)
	if o.opts.ClientCredentials {
		g, err = o.serviceGrant(ctx, g, d.server, scopes)
	} else {
		g, err = o.userGrant(ctx, g, d.server, scopes)
	}
	if err != nil {
		return err
	}
	return o.keep(g)
}

// notInteractive says what the user can do, and keeps for that what the server wants.
func (o *OAuth) notInteractive(asked challenge) error {
	if len(asked.scopes) > 0 && !slices.Equal(o.grant.Wanted, asked.scopes) {
		g := o.grant
		g.Wanted = asked.scopes
		if err := o.keep(g); err != nil {
			return err
		}
	}
	if o.opts.Login == "" {
		return errors.New("the server wants authorization, and there is nobody to ask")
	}
	return fmt.Errorf("the server wants authorization: run %s", o.opts.Login)
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
	if !o.opts.ClientCredentials && slices.Contains(d.server.Scopes, offline) {
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
