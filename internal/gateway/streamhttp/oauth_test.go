package streamhttp

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

const resource = "https://mcp.example/mcp"

// issuer is an authorization server with one key.
type issuer struct {
	*httptest.Server
	key       *rsa.PrivateKey
	kid       atomic.Value
	asked     atomic.Int32 // for its keys
	pretends  string       // to be another issuer
	withOIDC  bool         // it has the metadata of OpenID Connect only
	keysFault atomic.Bool
	thinks    func() // before it gives its keys, nil: it does not
	jwk       string // more members of the key: "" is RS256 for signatures
}

func newIssuer(t *testing.T, prepare func(*issuer)) *issuer {
	t.Helper()
	is := &issuer{}
	is.kid.Store("k1")
	if prepare != nil {
		prepare(is)
	}
	if is.key == nil {
		is.key = rsaKey(t, 2048)
	}
	key := is.key
	mux := http.NewServeMux()
	where := "/.well-known/oauth-authorization-server"
	if is.withOIDC {
		where = "/.well-known/openid-configuration"
	}
	mux.HandleFunc(where, func(w http.ResponseWriter, _ *http.Request) {
		name := is.URL
		if is.pretends != "" {
			name = is.pretends
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, name, is.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		is.asked.Add(1)
		if is.thinks != nil {
			is.thinks()
		}
		if is.keysFault.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		more := `"alg":"RS256","use":"sig"`
		if is.jwk != "" {
			more = is.jwk
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"new kind","kid":"x"},{"kty":"RSA",%s,"kid":%q,"n":%q,"e":%q}]}`, more, is.kid.Load(),
			base64.RawURLEncoding.EncodeToString(key.N.Bytes()), base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()))
	})
	is.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		is.Server.Close()
		is.Server.Client().CloseIdleConnections()
	})
	return is
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func segment(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

type claimSet map[string]any

// token signs claims; changed replaces or removes (nil) some of the usual ones.
func (is *issuer) token(changed claimSet) string {
	claims := is.usual()
	for k, v := range changed {
		if claims[k] = v; v == nil {
			delete(claims, k)
		}
	}
	return is.signed(crypto.SHA256, claimSet{"alg": "RS256", "typ": "at+jwt"}, claims)
}

// signed signs claims with a header and an algorithm of one's own.
func (is *issuer) signed(hash crypto.Hash, header, claims claimSet) string {
	header["kid"] = is.kid.Load()
	text := segment(header) + "." + segment(claims)
	sum := hash.New()
	sum.Write([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, is.key, hash, sum.Sum(nil))
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// usual are the claims of a good token.
func (is *issuer) usual() claimSet {
	return claimSet{"iss": is.URL, "aud": resource, "sub": "ada", "scope": "mcp files", "exp": time.Now().Add(time.Hour).Unix()}
}

// forged signs the usual claims with the public key as if it were a shared secret, which careless verifiers accept.
func (is *issuer) forged() string {
	text := segment(claimSet{"alg": "HS256", "kid": "k1"}) + "." + strings.Split(is.token(nil), ".")[1]
	mac := hmac.New(sha256.New, is.key.N.Bytes())
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (is *issuer) verifier() *verifier { return newVerifier(is.URL, resource) }

func (is *issuer) options() Options {
	return Options{OAuth: &OAuth{Issuer: is.URL, Resource: resource, Scopes: []string{"mcp"}}}
}

func TestAccessTokens(t *testing.T) {
	is := newIssuer(t, nil)
	other := newIssuer(t, nil)
	hub := &testHub{}
	w := newWorld(t, hub, is.options())
	good := is.token(nil)
	parts := strings.Split(good, ".")
	for _, tc := range []struct {
		name, token string
		status      int
		says        string
	}{
		{"a good one", good, 200, ""},
		{"a good one again", good, 200, ""},
		{"several audiences", is.token(claimSet{"aud": []string{"x", resource}}), 200, ""},
		{"scopes as a list", is.token(claimSet{"scope": nil, "scp": []string{"mcp"}}), 200, ""},
		{"scopes in scp", is.token(claimSet{"scope": nil, "scp": "mcp x"}), 200, ""},
		{"none", "", 401, `scope="mcp"`},
		{"no JWT", "nonsense", 401, `error="invalid_token"`},
		{"expired", is.token(claimSet{"exp": time.Now().Add(-time.Minute).Unix()}), 401, `error="invalid_token"`},
		{"without an end", is.token(claimSet{"exp": nil}), 401, `error="invalid_token"`},
		{"not valid yet", is.token(claimSet{"nbf": time.Now().Add(time.Hour).Unix()}), 401, `error="invalid_token"`},
		{"for another resource", is.token(claimSet{"aud": "https://other.example"}), 401, `error="invalid_token"`},
		{"for nobody", is.token(claimSet{"aud": nil}), 401, `error="invalid_token"`},
		{"of another issuer", is.token(claimSet{"iss": "https://other.example"}), 401, `error="invalid_token"`},
		{"signed by another", other.token(claimSet{"iss": is.URL}), 401, `error="invalid_token"`},
		{"changed", parts[0] + "." + segment(claimSet{"iss": is.URL, "aud": resource, "sub": "eve", "scope": "mcp", "exp": time.Now().Add(time.Hour).Unix()}) + "." + parts[2], 401, `error="invalid_token"`},
		{"of another algorithm than the key's", is.signed(crypto.SHA512, claimSet{"alg": "RS512", "typ": "at+jwt"}, is.usual()), 401, `error="invalid_token"`},
		{"of a plain type", is.signed(crypto.SHA256, claimSet{"alg": "RS256", "typ": "JWT"}, is.usual()), 200, ""},
		{"without a type", is.signed(crypto.SHA256, claimSet{"alg": "RS256"}, is.usual()), 200, ""},
		{"of the type's long form", is.signed(crypto.SHA256, claimSet{"alg": "RS256", "typ": "application/AT+jwt"}, is.usual()), 200, ""},
		{"for logging out", is.signed(crypto.SHA256, claimSet{"alg": "RS256", "typ": "logout+jwt"}, is.usual()), 401, `error="invalid_token"`},
		{"for logging out, in capital letters", is.signed(crypto.SHA256, claimSet{"alg": "RS256", "TYP": "logout+jwt"}, is.usual()), 401, `error="invalid_token"`},
		{"of a type that is no text", is.signed(crypto.SHA256, claimSet{"alg": "RS256", "typ": 7}, is.usual()), 401, `error="invalid_token"`},
		{"an ID token", is.token(claimSet{"at_hash": "x"}), 401, `error="invalid_token"`},
		{"of nobody", is.token(claimSet{"sub": nil}), 401, `error="invalid_token"`},
		{"of an empty name", is.token(claimSet{"sub": ""}), 401, `error="invalid_token"`},
		{"unsigned", segment(claimSet{"alg": "none"}) + "." + parts[1] + ".", 401, `error="invalid_token"`},
		{"signed with the public key as secret", is.forged(), 401, `error="invalid_token"`},
		{"without the scope", is.token(claimSet{"scope": "files"}), 403, `error="insufficient_scope"`},
		{"with scopes that are not strings", is.token(claimSet{"scope": 7}), 403, `error="insufficient_scope"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := hub.opened()
			a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+tc.token)
			challenge := a.header.Get("WWW-Authenticate")
			if a.status != tc.status || !strings.Contains(challenge, tc.says) {
				t.Errorf("%d %s %s", a.status, challenge, a.body)
			}
			if (tc.status == 200) != (hub.opened() > before) {
				t.Error("the hub heard of who was refused, or not of who was let in")
			}
			if tc.status != 200 && !strings.Contains(challenge, `resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"`) {
				t.Errorf("challenge: %s", challenge)
			}
		})
	}
	if p := hub.session(0).peer; p.Subject != "sub:ada" {
		t.Errorf("peer: %+v", p)
	}
}

func TestResourceMetadata(t *testing.T) {
	is := newIssuer(t, nil)
	w := newWorld(t, &testHub{}, is.options())
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		resp, err := w.client.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		err = json.NewDecoder(resp.Body).Decode(&doc)
		resp.Body.Close()
		if err != nil || doc.Resource != resource || len(doc.Servers) != 1 || doc.Servers[0] != is.URL || len(doc.Scopes) != 1 {
			t.Errorf("%s: %+v, %v", path, doc, err)
		}
	}
	resp, err := w.client.Post(w.url+wellKnown, "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestIssuerWithTheMetadataOfOpenIDConnect(t *testing.T) {
	is := newIssuer(t, func(is *issuer) { is.withOIDC = true })
	if _, err := is.verifier().verify(t.Context(), is.token(nil)); err != nil {
		t.Error(err)
	}
}

// A server that cannot be asked is not a verdict on the token, and one that calls itself something else is not believed. What is no token is
// refused all the same.
func TestTokensThatCannotBeCheckedNow(t *testing.T) {
	for name, prepare := range map[string]func(*issuer){
		"another issuer's metadata": func(is *issuer) { is.pretends = "https://other.example" },
		"no keys":                   func(is *issuer) { is.keysFault.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			is := newIssuer(t, prepare)
			if _, err := is.verifier().verify(t.Context(), is.token(nil)); err == nil || errors.Is(err, errTokenInvalid) {
				t.Errorf("error: %v", err)
			}
			if _, err := is.verifier().verify(t.Context(), "no token"); !errors.Is(err, errTokenInvalid) {
				t.Errorf("no token: %v", err)
			}
			w := newWorld(t, &testHub{}, is.options())
			if a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+is.token(nil)); a.status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

// A new key is found, but tokens with made-up key ids do not make us ask again and again.
func TestKeysAreNotAskedForWithEveryToken(t *testing.T) {
	is := newIssuer(t, nil)
	v := is.verifier()
	if _, err := v.verify(t.Context(), is.token(nil)); err != nil {
		t.Fatal(err)
	}
	is.kid.Store("made-up")
	for i := range 20 {
		if _, err := v.verify(t.Context(), is.token(claimSet{"jti": i})); !errors.Is(err, errTokenInvalid) {
			t.Fatalf("a token with an unknown key: %v", err)
		}
	}
	if n := is.asked.Load(); n != 1 {
		t.Errorf("the keys were asked for %d times", n)
	}
}

// While the issuer does not give its keys, those that are known are of use. Made-up key ids do not make us ask again and again.
func TestKeysThatAreNotGivenNow(t *testing.T) {
	began, goesOn := make(chan struct{}, 100), make(chan struct{})
	is := newIssuer(t, func(is *issuer) {
		is.thinks = func() {
			if is.keysFault.Load() {
				began <- struct{}{}
				<-goesOn
			}
		}
	})
	v := is.verifier()
	verify := func(token string) <-chan error {
		came := make(chan error, 1)
		go func() {
			_, err := v.verify(context.Background(), token)
			came <- err
		}()
		return came
	}
	if err := <-verify(is.token(nil)); err != nil {
		t.Fatal(err)
	}
	known := is.token(claimSet{"jti": "another"})
	is.kid.Store("made-up")
	is.keysFault.Store(true)
	old := *v.keys.latest.Load()
	old.when = old.when.Add(-keysMemory)
	v.keys.latest.Store(&old)
	first := verify(is.token(nil))
	<-began
	select {
	case err := <-verify(known):
		if err != nil {
			t.Errorf("a token with a known key: %v", err)
		}
	case <-time.After(await.Limit):
		t.Error("a token with a known key waits for the others")
	}
	close(goesOn)
	if err := <-first; err == nil || errors.Is(err, errTokenInvalid) {
		t.Errorf("a token whose key cannot be asked for: %v", err)
	}
	for i := range 20 {
		if err := <-verify(is.token(claimSet{"jti": i})); err == nil || errors.Is(err, errTokenInvalid) {
			t.Fatalf("soon after: %v", err)
		}
	}
	if n := is.asked.Load(); n != 2 {
		t.Errorf("the keys were asked for %d times", n)
	}
}

func TestStaticTokensBesideOAuth(t *testing.T) {
	is := newIssuer(t, nil)
	opts := is.options()
	opts.Bearer = []string{"secret"}
	hub := &testHub{}
	w := newWorld(t, hub, opts)
	for _, token := range []string{"secret", is.token(nil)} {
		if a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+token); a.status != 200 {
			t.Errorf("%.10s: %+v", token, a)
		}
	}
}

func TestMemoryForTokensIsBounded(t *testing.T) {
	v := newVerifier("https://issuer.example", resource)
	now := time.Unix(1000, 0)
	for i := range 3 * maxKnownTokens {
		v.remember(sha256.Sum256([]byte(fmt.Sprint(i))), knownToken{until: now.Add(time.Minute)})
		if len(v.known) > maxKnownTokens {
			t.Fatalf("%d tokens are remembered", len(v.known))
		}
	}
	sum := sha256.Sum256([]byte("x"))
	v.remember(sum, knownToken{claims: Claims{Subject: "ada"}, until: now.Add(time.Minute)})
	if c, ok := v.remembered(sum, now); !ok || c.Subject != "ada" {
		t.Error("a token is forgotten at once")
	}
	if _, ok := v.remembered(sum, now.Add(time.Minute)); ok {
		t.Error("a token is remembered beyond its end")
	}
}

func TestDefaultVerifierAsksTheIssuer(t *testing.T) {
	is := newIssuer(t, nil)
	var g guard
	g.init(nil, &OAuth{Issuer: is.URL, Resource: resource}, nil)
	if _, err := g.verifier.verify(t.Context(), is.token(nil)); err != nil || is.asked.Load() != 1 {
		t.Errorf("%v, the issuer was asked %d times for its keys", err, is.asked.Load())
	}
}

// Only keys that are for signatures, and long enough, are believed.
func TestKeysThatAreNotBelieved(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	for name, prepare := range map[string]func(*issuer){
		"a key for encryption": func(is *issuer) { is.jwk = `"use":"enc"` },
		"a short key":          func(is *issuer) { is.key = rsaKey(t, 1024) },
		"another algorithm":    func(is *issuer) { is.jwk = `"alg":"PS256"` },
	} {
		is := newIssuer(t, prepare)
		if claims, err := is.verifier().verify(t.Context(), is.token(nil)); !errors.Is(err, errTokenInvalid) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
	is := newIssuer(t, func(is *issuer) { is.jwk = `"ext":true` })
	if _, err := is.verifier().verify(t.Context(), is.token(nil)); err != nil {
		t.Error(err)
	}
}

// A key that the issuer has begun to use is asked for, once what is known is old enough.
func TestNewKeys(t *testing.T) {
	is := newIssuer(t, nil)
	v := is.verifier()
	if _, err := v.verify(t.Context(), is.token(nil)); err != nil {
		t.Fatal(err)
	}
	is.kid.Store("k2")
	old := *v.keys.latest.Load()
	old.when = old.when.Add(-keysMemory)
	v.keys.latest.Store(&old)
	if _, err := v.verify(t.Context(), is.token(nil)); err != nil {
		t.Error(err)
	}
}

// An authorization server can make nobody a static token's owner.
func TestSubjectsDoNotCollide(t *testing.T) {
	is := newIssuer(t, nil)
	opts := is.options()
	opts.Bearer = []string{"aaa", "aaa", "bbb"}
	w := newWorld(t, &testHub{}, opts)
	subjects := map[string]string{}
	for i, token := range []string{"aaa", "bbb", is.token(claimSet{"sub": "bearer:1"}), is.token(claimSet{"sub": "bearer-1"})} {
		if a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+token); a.status != 200 {
			t.Fatalf("%+v", a)
		}
		subject := w.hub.session(i).peer.Subject
		if other, taken := subjects[subject]; taken {
			t.Errorf("%.10s and %.10s are both %s", other, token, subject)
		}
		subjects[subject] = token
	}
}

// A stream without an end of its own ends with the token that opened it; a call that runs goes on.
func TestStreamsEndWithTheirToken(t *testing.T) {
	hub := &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		switch {
		case strings.Contains(string(line), "spoken"):
			reply.Send([]byte(note(0)))
		default:
			silent(s, line, reply)
		}
	}}
	is := newIssuer(t, nil)
	w := newWorld(t, hub, is.options())
	session := "Mcp-Session-Id: " + w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer "+is.token(nil)).header.Get("Mcp-Session-Id")
	ends := time.Now().Add(3 * time.Second).Truncate(time.Second)
	token := "Authorization: Bearer " + is.token(claimSet{"exp": ends.Unix()})
	calling, silently := make(chan answer, 1), make(chan answer, 1)
	go func() { calling <- w.do("POST", call(1), session, token) }()
	go func() {
		silently <- w.do("POST", modernLine(1, "subscriptions/listen", ""), append(modernHeaders("subscriptions/listen"), token)...)
	}()
	s := hub.session(0)
	s.await(t, "message "+call(1))
	get := w.open("GET", "", session, token)
	listen := w.open("POST", modernLine(1, "subscriptions/listen", `"x":"spoken",`), append(modernHeaders("subscriptions/listen"), token)...)
	listen.want(note(0), "END")
	get.want("", "END")
	if a := <-silently; a.status != 401 || !strings.Contains(a.header.Get("WWW-Authenticate"), "the token has ended") {
		t.Errorf("a stream that has not begun: %+v", a)
	}
	if now := time.Now(); now.Before(ends) {
		t.Error("a stream has ended before its token")
	}
	s.reply(1).Send([]byte(result(1)))
	if a := <-calling; a.status != 200 || !strings.Contains(a.body, result(1)) {
		t.Errorf("the call: %+v", a)
	}
}

func TestTokenSaysWhenItEnds(t *testing.T) {
	is := newIssuer(t, nil)
	ends := time.Now().Add(time.Minute).Truncate(time.Second)
	v := is.verifier()
	for range 2 { // the second time from memory
		if c, err := v.verify(t.Context(), is.token(claimSet{"exp": ends.Unix()})); err != nil || !c.Expires.Equal(ends) {
			t.Errorf("%+v, %v", c, err)
		}
	}
}
