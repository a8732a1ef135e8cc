package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// authority is an MCP server that wants tokens, and the authorization server that gives them, in one.
type authority struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	metadata map[string]any // changes to the authorization server's metadata; nil values are left out
	resource string         // what the protected-resource metadata is about, "": the server
	names    string         // the authorization server it names, "": itself
	need     string         // scope that calls need
	stubborn bool           // no token has it
	lifetime int            // of tokens in seconds
	iss      *string        // in redirects; nil: the right one
	refuse   string         // error for refresh tokens
	unscoped string         // the same for those with a scope
	forms    []url.Values   // of the token endpoint
	pages    []url.Values   // of the authorization endpoint
	granted  int
	valid    map[string]string // tokens with their scopes

	registered []map[string]any // what clients said of themselves
	scopeless  bool             // no client is registered with scopes
	named      bool             // nor with an address in its redirect
	forgets    bool             // the clients registered until now
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, valid: map[string]string{}, lifetime: 3600}
	a.Server = httptest.NewServer(a.handler())
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	return a
}

func (a *authority) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", a.mcp)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", a.resourceMetadata)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.serverMetadata)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/as", a.serverMetadata)
	mux.HandleFunc("GET /as/authorize", a.authorize)
	mux.HandleFunc("POST /as/token", a.token)
	mux.HandleFunc("POST /as/register", a.register)
	return mux
}

func (a *authority) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Error(err)
	}
}

func (a *authority) mcp(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	scopes, ok := a.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	need, stubborn := a.need, a.stubborn
	a.mu.Unlock()
	switch {
	case !ok:
		w.Header().Set("WWW-Authenticate", `Basic realm="x", Bearer error="invalid_token", scope="read"`)
		w.WriteHeader(http.StatusUnauthorized)
	case need != "" && (stubborn || !slices.Contains(strings.Fields(scopes), need)):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, need))
		w.WriteHeader(http.StatusForbidden)
	default:
		m := newMessage(r.Context(), body)
		reply(w, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":{}}`)
	}
}

func (a *authority) resourceMetadata(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource := a.resource
	if resource == "" {
		resource = a.URL + "/mcp"
	}
	a.json(w, 200, map[string]any{"resource": resource, "authorization_servers": []string{cmp.Or(a.names, a.URL+"/as")}, "scopes_supported": []string{"all"}})
}

func (a *authority) serverMetadata(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := map[string]any{
		"issuer": a.URL + "/as", "authorization_endpoint": a.URL + "/as/authorize", "token_endpoint": a.URL + "/as/token",
		"registration_endpoint": a.URL + "/as/register", "code_challenge_methods_supported": []string{"S256"},
		"scopes_supported": []string{"offline_access"}, "authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
	}
	for key, value := range a.metadata {
		m[key] = value
		if value == nil {
			delete(m, key)
		}
	}
	a.json(w, 200, m)
}

func (a *authority) register(w http.ResponseWriter, r *http.Request) {
	var said map[string]any
	if err := json.NewDecoder(r.Body).Decode(&said); err != nil || said["application_type"] != "native" {
		a.t.Errorf("registration %v: %v", said, err)
	}
	if a.scopeless && said["scope"] != nil {
		a.json(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	if a.named && strings.Contains(fmt.Sprint(said["redirect_uris"]), "127.0.0.1") {
		a.json(w, http.StatusBadRequest, map[string]any{"error": "invalid_redirect_uri"})
		return
	}
	said["client_id"], said["redirect_uris"] = "registered", "of another form than it was said in"
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registered = append(a.registered, said)
	a.json(w, http.StatusCreated, said)
}

func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages = append(a.pages, q)
	iss := a.URL + "/as"
	if a.iss != nil {
		iss = *a.iss
	}
	back := url.Values{"code": {"c" + q.Get("code_challenge")}, "state": {q.Get("state")}, "iss": {iss}}
	if iss == "" {
		back.Del("iss")
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	form := r.PostForm
	if id, secret, ok := r.BasicAuth(); ok {
		form.Set("basic", id+":"+secret)
	}
	a.forms = append(a.forms, form)
	if a.forgets && len(a.registered) == 0 {
		a.json(w, 401, map[string]any{"error": "invalid_client"})
		return
	}
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case form.Get("grant_type") == "refresh_token" && form.Has("scope") && a.unscoped != "":
		a.json(w, 400, map[string]any{"error": a.unscoped})
		return
	case form.Get("grant_type") == "refresh_token" && a.refuse != "":
		a.json(w, 400, map[string]any{"error": a.refuse})
		return
	case form.Get("grant_type") == "authorization_code" && form.Get("code") != "c"+base64.RawURLEncoding.EncodeToString(sum[:]):
		a.json(w, 400, map[string]any{"error": "invalid_grant"})
		return
	}
	a.granted++
	name, scope := fmt.Sprintf("t%d", a.granted), form.Get("scope")
	if scope == "" && len(a.pages) > 0 {
		scope = a.pages[len(a.pages)-1].Get("scope")
	}
	a.valid[name] = scope
	a.json(w, 200, map[string]any{
		"access_token": name, "token_type": "Bearer", "expires_in": a.lifetime, "refresh_token": "r" + name, "scope": scope,
	})
}

// expire makes every token invalid.
func (a *authority) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.valid)
}

// memory is a GrantStore that also has what another process puts there.
type memory struct {
	held  sync.Mutex
	mu    sync.Mutex
	grant Grant
	full  bool // it can store nothing
}

func (m *memory) Load() (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grant, nil
}

func (m *memory) Save(g Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errors.New("no space left on device")
	}
	m.grant = g
	return nil
}

func (m *memory) Lock(context.Context) (func(), error) {
	m.held.Lock()
	return m.held.Unlock, nil
}

// browser follows a page as a user's would who agrees.
func browser(t *testing.T) func(context.Context, Page) error {
	return func(ctx context.Context, page Page) error {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		t.Logf("the browser shows: %s", text)
		return err
	}
}

func (a *authority) open(opts OAuthOptions) (*client, *OAuth) {
	transport := &http.Transport{}
	a.t.Cleanup(transport.CloseIdleConnections)
	opts.Transport, opts.Endpoint = transport, a.URL+"/mcp"
	oauth := NewOAuth(opts)
	return dial(a.t, Options{URL: a.URL + "/mcp", OAuth: oauth}), oauth
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
const pong = `{"jsonrpc":"2.0","id":1,"result":{}}`

// The whole way: registration, consent, token, a step up that loses no scope, renewal, and a second run with what was stored.
func TestAuthorization(t *testing.T) {
	a, store := newAuthority(t), &memory{}
	c, _ := a.open(OAuthOptions{Authorize: browser(t), Store: store})
	c.say(ping)
	c.wantLine(pong)
	a.mu.Lock()
	a.need = "write"
	a.mu.Unlock()
	c.say(ping)
	c.wantLine(pong)
	a.expire()
	c.say(ping)
	c.wantLine(pong)

	again, _ := a.open(OAuthOptions{Store: store}) // nobody to ask this time, and nobody needs to be asked
	again.say(ping)
	again.wantLine(pong)

	a.mu.Lock()
	defer a.mu.Unlock()
	var scopes []string
	for _, page := range a.pages {
		scopes = append(scopes, page.Get("scope"))
		if page.Get("resource") != a.URL+"/mcp" || page.Get("client_id") != "registered" || page.Get("code_challenge_method") != "S256" {
			t.Errorf("asked for consent with %v", page)
		}
	}
	if diff := gocmp.Diff([]string{"read offline_access", "write read offline_access"}, scopes); diff != "" {
		t.Errorf("scopes: %s", diff)
	}
	var registered []string // a client may ask only for what it was registered with
	for _, said := range a.registered {
		registered = append(registered, fmt.Sprint(said["scope"]))
	}
	if diff := gocmp.Diff(scopes, registered); diff != "" {
		t.Errorf("registered with: %s", diff)
	}
	var grants []string
	for _, form := range a.forms {
		grants = append(grants, form.Get("grant_type"))
		if form.Get("resource") != a.URL+"/mcp" || form.Get("client_id") != "registered" {
			t.Errorf("asked for a token with %v", form)
		}
	}
	if diff := gocmp.Diff([]string{"authorization_code", "authorization_code", "refresh_token"}, grants); diff != "" {
		t.Errorf("grants: %s", diff)
	}
}

// The scope for a refresh token is asked for beside others, and not alone: a server that names no scopes has some that it gives to
// whoever asks for none.
func TestScopesThatAreAskedFor(t *testing.T) {
	for _, tc := range []struct{ named, want []string }{
		{named: []string{"read"}, want: []string{"read", "offline_access"}},
		{named: nil, want: nil},
	} {
		d := discovered{scopes: tc.named, server: authServer{Scopes: []string{"openid", "offline_access"}}}
		if diff := gocmp.Diff(tc.want, NewOAuth(OAuthOptions{}).scopes(d, challenge{}, nil)); diff != "" {
			t.Error(diff)
		}
	}
}

// A server that registers no client with scopes registers one without.
func TestRegistrationWithoutScopes(t *testing.T) {
	a := newAuthority(t)
	a.scopeless = true
	c, _ := a.open(OAuthOptions{Authorize: browser(t)})
	c.say(ping)
	c.wantLine(pong)
	if page := a.pages[0]; page.Get("scope") != "read offline_access" {
		t.Errorf("asked for consent with %v", page)
	}
}

// The browser comes back to an address, but to localhost where the server takes no address, or somebody has registered us.
func TestRedirectByName(t *testing.T) {
	for name, tc := range map[string]struct {
		opts  OAuthOptions
		named bool
		host  string
	}{
		"registered by us":            {host: "127.0.0.1"},
		"registered by us, by name":   {named: true, host: "localhost"},
		"registered by somebody else": {opts: OAuthOptions{ClientID: "registered"}, host: "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.named = tc.named
			tc.opts.Authorize = browser(t)
			c, _ := a.open(tc.opts)
			c.say(ping)
			c.wantLine(pong)
			if to := a.pages[0].Get("redirect_uri"); !strings.HasPrefix(to, "http://"+tc.host+":") {
				t.Errorf("the browser comes back to %s", to)
			}
		})
	}
}

// slow is a store that takes a second to read: whoever else wants the grant waits for its turn meanwhile.
type slow struct{ memory }

func (s *slow) Load() (Grant, error) {
	time.Sleep(time.Second)
	return s.memory.Load()
}

// Two requests that are refused at the same time ask the user once.
func TestTwoRequestsAskOnce(t *testing.T) {
	a := newAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		// Time stands still in a bubble while a connection is open.
		oauth := NewOAuth(OAuthOptions{Endpoint: a.URL + "/mcp", Authorize: browser(t), Store: &slow{}, Transport: &http.Transport{DisableKeepAlives: true}})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				header := http.Header{"Www-Authenticate": {`Bearer error="invalid_token", scope="read"`}}
				if err := oauth.answerChallenge(t.Context(), "", &http.Response{StatusCode: http.StatusUnauthorized, Header: header}); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pages) != 1 {
		t.Errorf("the user was asked %d times: %v", len(a.pages), a.pages)
	}
}

// A server that is not content with what it has asked for has its user asked twice, however many requests there are. Once it
// is content, the user may be asked again.
func TestConsentIsNotAskedForEver(t *testing.T) {
	a := newAuthority(t)
	a.need, a.stubborn = "write", true
	c, _ := a.open(OAuthOptions{Authorize: browser(t), Login: "outlive gateway login x"})
	pages := func() (scopes []string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, page := range a.pages {
			scopes = append(scopes, page.Get("scope"))
		}
		return scopes
	}
	const other = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	c.say(ping)
	c.say(other)
	for range 2 {
		if line := c.hear(); !strings.Contains(line, "has been granted write, and refuses still") || strings.Contains(line, "login") {
			t.Errorf("line %s", line)
		}
	}
	c.say(ping)
	c.wantError("1", "refuses still")
	write := "write read offline_access"
	if diff := gocmp.Diff([]string{"read offline_access", write, write}, pages()); diff != "" {
		t.Errorf("asked for consent: %s", diff)
	}

	a.mu.Lock()
	a.need, a.stubborn = "", false
	a.mu.Unlock()
	c.say(ping)
	c.wantLine(pong)
	a.mu.Lock()
	a.need = "more"
	a.mu.Unlock()
	c.say(ping)
	c.wantLine(pong)
}

// The page where the user is asked has what its endpoint's address has, asks for a refresh token in OpenID Connect's way, and has a PKCE
// challenge, also where the metadata say nothing of that.
func TestConsentPage(t *testing.T) {
	a := newAuthority(t)
	a.metadata = map[string]any{"authorization_endpoint": a.URL + "/as/authorize?tenant=x%26y", "code_challenge_methods_supported": nil}
	c, _ := a.open(OAuthOptions{Authorize: browser(t)})
	c.say(ping)
	c.wantLine(pong)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pages) != 1 {
		t.Fatalf("asked for consent with %v", a.pages)
	}
	for key, want := range map[string]string{"tenant": "x&y", "response_type": "code", "prompt": "consent", "code_challenge_method": "S256"} {
		if got := a.pages[0][key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// The page of an authorization server that says itself what is to be shown there is asked for as it is: Entra ID refuses a prompt twice.
func TestConsentPageWithAPromptOfItsOwn(t *testing.T) {
	a := newAuthority(t)
	a.metadata = map[string]any{"authorization_endpoint": a.URL + "/as/authorize?prompt=select_account"}
	c, _ := a.open(OAuthOptions{Authorize: browser(t)})
	c.say(ping)
	c.wantLine(pong)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pages) != 1 || !slices.Equal(a.pages[0]["prompt"], []string{"select_account"}) {
		t.Errorf("asked for consent with %v", a.pages)
	}
}

// What is not as it must be ends in an error that says so, and no code and no token goes anywhere.
func TestAuthorizationIsRefused(t *testing.T) {
	wrong, none := "https://evil.example", ""
	for _, tc := range []struct {
		name   string
		change func(*authority)
		want   string
	}{
		{"other issuer in the metadata", func(a *authority) { a.metadata = map[string]any{"issuer": wrong} }, "is that of https://evil.example"},
		{"other resource", func(a *authority) { a.resource = "https://evil.example/mcp" }, "not about"},
		{"other path", func(a *authority) { a.resource = a.URL + "/mcpx" }, "not about"},
		{"no PKCE", func(a *authority) { a.metadata = map[string]any{"code_challenge_methods_supported": []string{"plain"}} }, "PKCE"},
		{"no PKCE at all", func(a *authority) { a.metadata = map[string]any{"code_challenge_methods_supported": []string{}} }, "PKCE"},
		{"token endpoint in the clear", func(a *authority) { a.metadata = map[string]any{"token_endpoint": "http://evil.example/t"} }, "neither https"},
		{"other issuer in the redirect", func(a *authority) { a.iss = &wrong }, "another authorization server"},
		{"no issuer in the redirect", func(a *authority) { a.iss = &none }, "RFC 9207"},
		{"no registration", func(a *authority) { a.metadata = map[string]any{"registration_endpoint": nil} }, "configure a client id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAuthority(t)
			tc.change(a)
			c, _ := a.open(OAuthOptions{Authorize: browser(t)})
			c.say(ping)
			c.wantError("1", tc.want)
			if len(a.forms) > 0 {
				t.Error("a token was asked for")
			}
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{Login: "outlive gateway login x"})
	c.say(ping)
	line := c.wantError("1", "run outlive gateway login x")
	if !strings.Contains(line, `"delivered":"no"`) {
		t.Errorf("line %s", line)
	}
	other := dial(t, Options{URL: a.URL + "/mcp"})
	other.say(ping)
	other.wantError("1", "the server wants authorization: HTTP 401")
}

// A token that another process has got meanwhile is used, as after a login in another terminal.
func TestTokenOfAnotherProcess(t *testing.T) {
	a, store := newAuthority(t), &memory{}
	c, _ := a.open(OAuthOptions{Store: store})
	c.say(ping)
	c.wantError("1", "wants a login")
	_, login := a.open(OAuthOptions{Store: store, Authorize: browser(t)})
	if err := login.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.say(ping)
	c.wantLine(pong)
}

// A disk that is full when a token is renewed costs neither the request nor the login. The new refresh token is used, and stored later.
func TestRenewedGrantThatCannotBeStored(t *testing.T) {
	a, store := newAuthority(t), &memory{}
	c, _ := a.open(OAuthOptions{Authorize: browser(t), Store: store})
	fill := func(full bool) {
		store.mu.Lock()
		defer store.mu.Unlock()
		store.full = full
	}
	for _, full := range []bool{false, true, true} {
		fill(full)
		a.expire()
		c.say(ping)
		c.wantLine(pong)
	}
	fill(false)
	c.say(ping)
	c.wantLine(pong)
	if g, _ := store.Load(); g.RefreshToken != "rt3" || g.AccessToken != "t3" {
		t.Errorf("stored: %+v", g)
	}
	var used []string
	for _, form := range a.forms[1:] {
		used = append(used, form.Get("refresh_token"))
	}
	if diff := gocmp.Diff([]string{"rt1", "rt2"}, used); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(c.logged(), "no space left on device: it is tried again"); n != 1 {
		t.Errorf("told %d times: %s", n, c.logged())
	}
}

// A server that has forgotten its clients, as after a restart, wants a login. That registers us anew, and where there is a browser it
// comes by itself.
func TestForgottenClient(t *testing.T) {
	a, store := newAuthority(t), &memory{}
	_, login := a.open(OAuthOptions{Store: store, Authorize: browser(t)})
	if err := login.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.registered, a.forgets = nil, true
	a.mu.Unlock()
	a.expire()
	c, _ := a.open(OAuthOptions{Store: store, Login: "outlive login x"})
	c.say(ping)
	c.wantError("1", "gives no token: invalid_client: if it says so again, it has forgotten outlive, and the server wants a login: run outlive login x")
	if err := login.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.say(ping)
	c.wantLine(pong)

	a.mu.Lock()
	a.registered = nil
	a.mu.Unlock()
	a.expire()
	c, _ = a.open(OAuthOptions{Store: store, Authorize: browser(t)})
	c.say(ping)
	c.wantLine(pong)
}

// Credentials given out by one authorization server are not shown to another.
func TestCredentialsBelongToAnIssuer(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{ClientID: "me", ClientSecret: "s", Issuer: "https://login.example", Authorize: browser(t)})
	c.say(ping)
	c.wantError("1", "the configured issuer is https://login.example")
	if len(a.forms) > 0 {
		t.Error("a token was asked for")
	}
}

// A server that suddenly names another authorization server gets nothing sent there that another one has given out, until
// somebody logs in again; a client secret goes to the configured issuer only.
func TestIssuerIsPinned(t *testing.T) {
	a, other, store := newAuthority(t), newAuthority(t), &memory{}
	c, _ := a.open(OAuthOptions{Authorize: browser(t), Store: store, ClientID: "me"})
	c.say(ping)
	c.wantLine(pong)

	a.mu.Lock()
	a.names, a.refuse = other.URL+"/as", "invalid_grant"
	a.mu.Unlock()
	a.expire()
	c, login := a.open(OAuthOptions{Authorize: browser(t), Store: store, ClientID: "me", Login: "outlive gateway login x"})
	c.say(ping)
	c.wantError("1", "wants tokens of "+other.URL+"/as now, before it was "+a.URL+"/as; if that is right, run outlive gateway login x")
	for name, opts := range map[string]OAuthOptions{
		"configure its issuer":      {ClientID: "me", ClientSecret: "s"},
		"the configured issuer is ": {ClientID: "me", ClientSecret: "s", Issuer: a.URL + "/as"},
	} {
		opts.Authorize = browser(t)
		_, secret := a.open(opts)
		if err := secret.Login(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(other.forms) > 0 || len(other.pages) > 0 {
		t.Fatalf("the other authorization server was asked: %v %v", other.pages, other.forms)
	}
	if err := login.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if store.grant.Issuer != other.URL+"/as" || len(other.forms) != 1 {
		t.Errorf("after the login: %+v, %v", store.grant, other.forms)
	}
}

// An authorization server is the same with and without the slash of an empty path, in whichever place its name stands, and no other
// slash means nothing.
func TestIssuerWithAndWithoutSlash(t *testing.T) {
	for _, tc := range []struct{ name, names, issuer, iss, configured, pinned, want string }{
		{name: "the server names it with the slash", names: "SELF/", issuer: "SELF", iss: "SELF"},
		{name: "it calls itself with the slash", names: "SELF", issuer: "SELF/", iss: "SELF/"},
		{name: "the redirect has the slash, the metadata has not", names: "SELF", issuer: "SELF", iss: "SELF/", want: "another authorization server"},
		{name: "the metadata has it, the redirect has not", names: "SELF/", issuer: "SELF/", iss: "SELF", want: "another authorization server"},
		{name: "configured with the slash", names: "SELF", issuer: "SELF", iss: "SELF", configured: "SELF/"},
		{name: "logged in before with the slash", names: "SELF", issuer: "SELF", iss: "SELF", pinned: "SELF/"},
		{name: "a path, in the redirect", names: "SELF/as", issuer: "SELF/as", iss: "SELF/as/", want: "another authorization server"},
		{name: "another host", names: "SELF/", issuer: "SELF.example", want: "the metadata of SELF/ is that of SELF.example, and its token endpoint is elsewhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAuthority(t)
			self := func(text string) string { return strings.ReplaceAll(text, "SELF", a.URL) }
			iss := self(tc.iss)
			a.names, a.iss, a.metadata = self(tc.names), &iss, map[string]any{"issuer": self(tc.issuer)}
			store := &memory{grant: Grant{Issuer: self(tc.pinned)}}
			c, _ := a.open(OAuthOptions{Authorize: browser(t), Issuer: self(tc.configured), ClientID: "me", Store: store})
			c.say(ping)
			if tc.want != "" {
				c.wantError("1", self(tc.want))
				return
			}
			c.wantLine(pong)
		})
	}
}

// An authorization server may call itself otherwise than the MCP server calls it, as Atlassian's, Slack's and Entra ID's do, as long as
// the issuer that it names gives the tokens. What is known of it has the name that the MCP server uses, which stays.
func TestIssuerThatCallsItselfOtherwise(t *testing.T) {
	for _, tc := range []struct{ name, names, issuer, iss, configured, pinned, want string }{
		{name: "a path is left out", names: "SELF/as", issuer: "SELF", iss: "SELF", pinned: "SELF/as"},
		{name: "a path is added", names: "SELF", issuer: "SELF/as/", iss: "SELF/as/", pinned: "SELF"},
		{name: "a place for the tenant", names: "SELF/as", issuer: "SELF/{tenantid}/v2.0", iss: "SELF/6e37-4be7/v2.0", pinned: "SELF/as"},
		{name: "more than a tenant", names: "SELF/as", issuer: "SELF/{tenantid}/v2.0", iss: "SELF/6e37/x/v2.0", want: "another authorization server"},
		{name: "configured as it calls itself", names: "SELF/as", issuer: "SELF", iss: "SELF", configured: "SELF", pinned: "SELF"},
		{name: "configured as the MCP server calls it", names: "SELF/as", issuer: "SELF", iss: "SELF", configured: "SELF/as", pinned: "SELF/as"},
		{name: "configured as another one", names: "SELF/as", issuer: "SELF", configured: "https://good.example", want: "the configured issuer is https://good.example"},
		{name: "the redirect has the name that was asked", names: "SELF/as", issuer: "SELF", iss: "SELF/as", want: "another authorization server"},
		{name: "tokens are given elsewhere", names: "SELF/as", issuer: "https://good.example", iss: "https://good.example", want: "its token endpoint is elsewhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAuthority(t)
			self := func(text string) string { return strings.ReplaceAll(text, "SELF", a.URL) }
			iss, store := self(tc.iss), &memory{}
			a.names, a.iss = self(tc.names), &iss
			a.metadata = map[string]any{"issuer": self(tc.issuer)}
			for range 2 { // the second is a process that comes later
				c, _ := a.open(OAuthOptions{Authorize: browser(t), Issuer: self(tc.configured), ClientID: "me", Store: store})
				c.say(ping)
				if tc.want != "" {
					c.wantError("1", self(tc.want))
					return
				}
				c.wantLine(pong)
				a.expire()
			}
			if store.grant.Issuer != self(tc.pinned) || len(a.pages) != 1 {
				t.Errorf("kept: %+v, after %d pages", store.grant, len(a.pages))
			}
		})
	}
}

// A renewal that has begun is finished, though nobody waits for it any more: its refresh token is used up.
func TestARenewalIsFinished(t *testing.T) {
	a := newAuthority(t)
	store := &memory{grant: Grant{
		Issuer: a.URL + "/as", TokenURL: a.URL + "/as/token", ClientID: "me", AccessToken: "old", RefreshToken: "r", Expiry: time.Now(),
	}}
	_, o := a.open(OAuthOptions{Store: store})
	ctx, cancel := context.WithCancel(t.Context())
	a.mu.Lock() // its answer waits
	stopped := make(chan error, 1)
	go func() {
		_, err := o.token(ctx)
		stopped <- err
	}()
	for len(o.turn) == 0 { // until it has begun
		runtime.Gosched()
	}
	cancel()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("who is cancelled waits: %v", err)
	}
	a.mu.Unlock()
	if token, err := o.token(t.Context()); token != "t1" || err != nil {
		t.Errorf("token %q, %v", token, err)
	}
	if len(a.forms) != 1 || store.grant.RefreshToken != "rt1" {
		t.Errorf("%d renewals, stored %+v", len(a.forms), store.grant)
	}
}

// Many requests with one expired token use its refresh token once.
func TestOneRenewalForAll(t *testing.T) {
	a := newAuthority(t)
	store := &memory{grant: Grant{
		Issuer: a.URL + "/as", TokenURL: a.URL + "/as/token", ClientID: "me", AccessToken: "old", RefreshToken: "r", Expiry: time.Now(),
	}}
	c, _ := a.open(OAuthOptions{Store: store})
	for i := range 20 {
		c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	for range 20 {
		if line := c.hear(); !strings.Contains(line, `"result"`) {
			t.Errorf("line %s", line)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.forms) != 1 || store.grant.RefreshToken != "rt1" {
		t.Errorf("%d renewals, refresh token %q", len(a.forms), store.grant.RefreshToken)
	}
}

// A refresh token that is no good any more leads back to the user.
func TestRefreshTokenIsRefused(t *testing.T) {
	a := newAuthority(t)
	a.refuse = "invalid_grant"
	store := &memory{grant: Grant{
		Issuer: a.URL + "/as", TokenURL: a.URL + "/as/token", AccessToken: "old", RefreshToken: "r", Expiry: time.Now(),
	}}
	c, _ := a.open(OAuthOptions{Store: store, Login: "login"})
	c.say(ping)
	c.wantError("1", "run login")
	interactive, _ := a.open(OAuthOptions{Store: store, Authorize: browser(t)})
	interactive.say(ping)
	interactive.wantLine(pong)
}

// A token is renewed with its scopes, and without a word of them where the server does not want to hear it.
func TestRenewalWithoutScopes(t *testing.T) {
	for _, code := range []string{"", "invalid_scope", "invalid_request"} {
		a := newAuthority(t)
		a.unscoped = code
		store := &memory{grant: Grant{
			Issuer: a.URL + "/as", TokenURL: a.URL + "/as/token", ClientID: "me", AccessToken: "old", RefreshToken: "r", Expiry: time.Now(), Scopes: []string{"read"},
		}}
		c, _ := a.open(OAuthOptions{Store: store})
		c.say(ping)
		c.wantLine(pong)
		a.mu.Lock()
		if a.forms[0].Get("scope") != "read" || (code == "") != (len(a.forms) == 1) || !slices.Equal(store.grant.Scopes, []string{"read"}) {
			t.Errorf("%q: asked with %v, stored %+v", code, a.forms, store.grant)
		}
		a.mu.Unlock()
	}
}

// A redirect that is not the answer to our question changes nothing.
func TestForeignRedirect(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{Authorize: func(ctx context.Context, page Page) error {
		u, err := url.Parse(page.URL)
		if err != nil {
			return err
		}
		resp, err := http.Get(u.Query().Get("redirect_uri") + "?code=x&state=y&iss=" + url.QueryEscape(a.URL+"/as"))
		if err != nil {
			return err
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if resp.StatusCode != http.StatusBadRequest {
			return errors.New(resp.Status)
		}
		return browser(t)(ctx, page)
	}})
	c.say(ping)
	c.wantLine(pong)
}

// A browser on another machine ends at an address that only the user can bring here. Other addresses change nothing.
func TestTheUserCopiesTheRedirect(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{Authorize: func(ctx context.Context, page Page) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.URL, nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		for _, other := range []string{page.URL, "http://127.0.0.1:1/callback?code=x&state=y", "127.0.0.1?code=%", ""} {
			if page.Arrived(other) == nil {
				t.Errorf("%q is taken", other)
			}
		}
		return page.Arrived(resp.Header.Get("Location"))
	}})
	c.say(ping)
	c.wantLine(pong)
}

// A refusal that is copied ends the login with what it says.
func TestTheUserCopiesARefusal(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{Authorize: func(_ context.Context, page Page) error {
		u, err := url.Parse(page.URL)
		if err != nil {
			return err
		}
		q := url.Values{"error": {"access_denied"}, "state": {u.Query().Get("state")}, "iss": {a.URL + "/as"}}
		return page.Arrived(u.Query().Get("redirect_uri") + "?" + q.Encode())
	}})
	c.say(ping)
	c.wantError("1", "not authorized: access_denied")
}

func TestTheUserTakesTooLong(t *testing.T) {
	a := newAuthority(t)
	c, _ := a.open(OAuthOptions{Authorize: func(context.Context, Page) error { return nil }, Patience: time.Millisecond})
	c.say(ping)
	c.wantError("1", "wait for the user's consent")
}
