package remote

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// device is the device authorization endpoint.
func (a *authority) device(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	form := r.PostForm
	if id, secret, ok := r.BasicAuth(); ok {
		form.Set("basic", id+":"+secret)
	}
	a.codes = append(a.codes, form)
	if a.refuseCode != "" || a.forgets && len(a.registered) == 0 {
		a.json(w, 400, map[string]any{"error": max(a.refuseCode, "invalid_client")})
		return
	}
	answer := map[string]any{
		"device_code": "secret", "user_code": "WDJB-MJHT", "verification_uri": a.URL + "/device",
		"verification_uri_complete": a.URL + "/device?user_code=WDJB-MJHT", "expires_in": 900, "interval": 7,
	}
	for key, value := range a.code {
		answer[key] = value
		if value == nil {
			delete(answer, key)
		}
	}
	a.json(w, 200, answer)
}

// stillWaits answers a question about the device code with what the test says, and reports whether that was no token.
func (a *authority) stillWaits(w http.ResponseWriter) bool {
	a.polled = append(a.polled, time.Now())
	code := ""
	if a.says != nil {
		code = a.says(len(a.polled))
	}
	switch {
	case code == "":
		return false
	case strings.HasPrefix(code, "HTTP"):
		w.WriteHeader(http.StatusBadGateway)
	case strings.HasPrefix(code, "200 "):
		a.json(w, 200, map[string]any{"error": code[4:]})
	default:
		a.json(w, 400, map[string]any{"error": code})
	}
	return true
}

// direct carries a request to a handler without a network, so that time is the bubble's.
type direct struct {
	http.Handler
	cut func(*http.Request) error
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.cut != nil {
		if err := d.cut(r); err != nil {
			return nil, err
		}
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// directAuthority is an authority with the device grant that is reached without a network, and options to log in there.
func directAuthority(t *testing.T) (*authority, OAuthOptions) {
	a := &authority{t: t, valid: map[string]string{}, lifetime: 3600, Server: &httptest.Server{URL: "https://far.example"}}
	a.metadata = map[string]any{"device_authorization_endpoint": a.URL + "/as/device", "authorization_endpoint": nil, "code_challenge_methods_supported": nil}
	return a, OAuthOptions{Endpoint: a.URL + "/mcp", Transport: direct{Handler: a.handler()}, Store: &memory{}}
}

// pauses are the times between what was asked about the device code.
func (a *authority) pauses(since time.Time) (all []time.Duration) {
	for _, at := range a.polled {
		all = append(all, at.Sub(since))
		since = at
	}
	return all
}

// A login with a code: registration for it, a code for the resource, patience, the token, and the next login as the same client.
func TestDeviceLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, opts := directAuthority(t)
		a.says = func(n int) string {
			return []string{"authorization_pending", "slow_down", "200 authorization_pending", ""}[n-1]
		}
		var shown []DeviceCode
		o, begun := NewOAuth(opts), time.Now()
		if err := o.LoginByDevice(t.Context(), func(c DeviceCode) error {
			shown = append(shown, c)
			if len(a.polled) > 0 {
				t.Error("asked before the user knows the code")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []DeviceCode{{Page: a.URL + "/device", Code: "WDJB-MJHT", Complete: a.URL + "/device?user_code=WDJB-MJHT", Valid: 15 * time.Minute}}
		if diff := gocmp.Diff(want, shown); diff != "" {
			t.Errorf("shown: %s", diff)
		}
		if diff := gocmp.Diff([]time.Duration{7 * time.Second, 7 * time.Second, 12 * time.Second, 12 * time.Second}, a.pauses(begun)); diff != "" {
			t.Errorf("pauses: %s", diff)
		}
		if len(a.registered) != 1 {
			t.Fatalf("registered %v", a.registered)
		}
		if diff := gocmp.Diff([]any{"authorization_code", "refresh_token", deviceGrantType}, a.registered[0]["grant_types"]); diff != "" {
			t.Errorf("grant types: %s", diff)
		}
		code := url.Values{"client_id": {"registered"}, "scope": {"read offline_access"}, "resource": {a.URL + "/mcp"}}
		if diff := gocmp.Diff([]url.Values{code}, a.codes); diff != "" {
			t.Errorf("asked for a code: %s", diff)
		}
		token := url.Values{"client_id": {"registered"}, "grant_type": {deviceGrantType}, "device_code": {"secret"}, "resource": {a.URL + "/mcp"}}
		if diff := gocmp.Diff(token, a.forms[3]); diff != "" {
			t.Errorf("asked for a token: %s", diff)
		}
		g, _ := opts.Store.Load()
		if g.AccessToken != "t1" || g.RefreshToken != "rt1" || g.Resource != a.URL+"/mcp" || strings.Join(g.Scopes, " ") != "read offline_access" {
			t.Errorf("stored %+v", g)
		}

		a.says = nil
		if err := NewOAuth(opts).LoginByDevice(t.Context(), func(DeviceCode) error { return nil }); err != nil || len(a.registered) != 1 {
			t.Errorf("once more: %v, registered %d times", err, len(a.registered))
		}
	})
}

// A code is shown, and what then becomes of the login: each end has its error and its time.
func TestDeviceLoginEnds(t *testing.T) {
	always := func(code string) func(int) string { return func(int) string { return code } }
	for _, tc := range []struct {
		name  string
		code  map[string]any
		says  func(n int) string
		opts  func(*OAuthOptions)
		want  error
		text  string
		after time.Duration
	}{
		{name: "denied", says: always("access_denied"), want: ErrDeviceDenied, after: 7 * time.Second},
		{name: "expired there", says: always("expired_token"), want: ErrDeviceTooLate, after: 7 * time.Second},
		{name: "expired here", says: always("authorization_pending"), code: map[string]any{"expires_in": 20}, want: ErrDeviceTooLate, after: 20 * time.Second},
		{name: "patience", says: always("authorization_pending"), opts: func(o *OAuthOptions) { o.Patience = 10 * time.Second }, want: ErrDeviceTooLate, after: 10 * time.Second},
		{name: "no validity", says: always("authorization_pending"), code: map[string]any{"expires_in": nil}, want: ErrDeviceTooLate, after: 5 * time.Minute},
		{name: "not this client", says: always("unauthorized_client"), want: ErrDeviceClient, text: "unauthorized_client", after: 7 * time.Second},
		{name: "code used up", says: always("invalid_grant"), text: "invalid_grant", after: 7 * time.Second},
		{name: "no interval", code: map[string]any{"interval": nil}, after: 5 * time.Second},
		{name: "numbers as text", code: map[string]any{"interval": "3", "expires_in": "600.5"}, after: 3 * time.Second},
		// The pause doubles up to a minute: 7, 14, 28, 56, 60 s.
		{name: "away", says: func(n int) string { return []string{"HTTP", "HTTP", "HTTP", "HTTP", ""}[n-1] }, after: 165 * time.Second},
		{name: "away for good", says: always("HTTP"), code: map[string]any{"expires_in": 30}, want: ErrDeviceTooLate, text: "HTTP 502", after: 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, opts := directAuthority(t)
				a.says, a.code = tc.says, tc.code
				if tc.opts != nil {
					tc.opts(&opts)
				}
				begun := time.Now()
				err := NewOAuth(opts).LoginByDevice(t.Context(), func(DeviceCode) error { return nil })
				failed := tc.want != nil || tc.text != ""
				if (err != nil) != failed || !errors.Is(err, tc.want) && tc.want != nil || failed && !strings.Contains(err.Error(), tc.text) {
					t.Errorf("error %v, want %v with %q", err, tc.want, tc.text)
				}
				if after := time.Since(begun); after != tc.after {
					t.Errorf("after %s, want %s", after, tc.after)
				}
				if g, _ := opts.Store.Load(); (g.AccessToken != "") == failed {
					t.Errorf("stored %+v", g)
				}
			})
		})
	}
}

// A connection that breaks while the user is at the page does not end the login, but the user may.
func TestDeviceLoginIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, opts := directAuthority(t)
		broken := 2
		opts.Transport = direct{a.handler(), func(r *http.Request) error {
			if r.URL.Path == "/as/token" && broken > 0 {
				broken--
				return errors.New("connection reset")
			}
			return nil
		}}
		if err := NewOAuth(opts).LoginByDevice(t.Context(), func(DeviceCode) error { return nil }); err != nil || broken != 0 {
			t.Errorf("%v, with %d breaks to come", err, broken)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := NewOAuth(opts).LoginByDevice(ctx, func(DeviceCode) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// A server that gives no code, or one that cannot be shown, says so; nothing is asked of the user then.
func TestNoDeviceCode(t *testing.T) {
	for _, tc := range []struct {
		name     string
		metadata map[string]any
		code     map[string]any
		refuse   string
		want     error
		text     string
	}{
		{name: "no endpoint", metadata: map[string]any{"device_authorization_endpoint": nil}, want: ErrNoDeviceLogin, text: "https://far.example/as gives no device codes"},
		{name: "in the clear", metadata: map[string]any{"device_authorization_endpoint": "http://far.example/as/device"}, text: "neither https"},
		{name: "not this client", refuse: "unauthorized_client", want: ErrDeviceClient},
		{name: "scope", refuse: "invalid_scope", text: "gives no device code: invalid_scope"},
		{name: "no page", code: map[string]any{"verification_uri": nil}, text: "without a page"},
		{name: "a page that is none", code: map[string]any{"verification_uri": "javascript:alert(1)"}, text: "without a page"},
		{name: "a terminal's commands in the page", code: map[string]any{"verification_uri": "https://x.example/\x1b[2J"}, text: "without a page"},
		{name: "and in the code", code: map[string]any{"user_code": "A\x1b[2J"}, text: "without a device code"},
		{name: "no registration", metadata: map[string]any{"registration_endpoint": nil}, text: "configure a client id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, opts := directAuthority(t)
			maps.Copy(a.metadata, tc.metadata)
			a.code, a.refuseCode = tc.code, tc.refuse
			err := NewOAuth(opts).LoginByDevice(t.Context(), func(DeviceCode) error { t.Error("shown"); return nil })
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want %v with %q", err, tc.want, tc.text)
			}
			if len(a.polled) > 0 {
				t.Error("a token was asked for")
			}
		})
	}
}

// Who the client is: one with a secret shows it at both endpoints; the browser's client is not taken for device codes, nor the other way
// round; one that the server has forgotten is registered again.
func TestDeviceClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		show := func(DeviceCode) error { return nil }
		a, opts := directAuthority(t)
		opts.ClientID, opts.ClientSecret, opts.Issuer = "me", "s", a.URL+"/as"
		if err := NewOAuth(opts).LoginByDevice(t.Context(), show); err != nil {
			t.Fatal(err)
		}
		if a.codes[0].Get("basic") != "me:s" || a.forms[0].Get("basic") != "me:s" || len(a.registered) > 0 {
			t.Errorf("%v, %v, registered %v", a.codes, a.forms, a.registered)
		}

		a, opts = directAuthority(t)
		_ = opts.Store.Save(Grant{Issuer: a.URL + "/as", ClientID: "browser", RedirectURI: "http://127.0.0.1:1234/callback"})
		if err := NewOAuth(opts).LoginByDevice(t.Context(), show); err != nil || len(a.registered) != 1 {
			t.Errorf("the browser's client: %v, registered %v", err, a.registered)
		}
		a.registered, a.forgets = nil, true
		if err := NewOAuth(opts).LoginByDevice(t.Context(), show); err != nil || len(a.registered) != 1 {
			t.Errorf("a forgotten client: %v, registered %v", err, a.registered)
		}
	})
}

// Whoever is asked in the browser is told that a code would do as well.
func TestPageTellsOfDeviceCodes(t *testing.T) {
	for _, offered := range []bool{true, false} {
		a := newAuthority(t)
		if offered {
			a.metadata = map[string]any{"device_authorization_endpoint": a.URL + "/as/device"}
		}
		_, o := a.open(OAuthOptions{Authorize: func(ctx context.Context, page Page) error {
			if page.Device != offered {
				t.Errorf("told %v, offered %v", page.Device, offered)
			}
			return browser(t)(ctx, page)
		}})
		if err := o.Login(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
