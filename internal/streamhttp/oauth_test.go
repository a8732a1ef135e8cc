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
}

func newIssuer(t *testing.T, prepare func(*issuer)) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	is := &issuer{key: key}
	is.kid.Store("k1")
	if prepare != nil {
		prepare(is)
	}
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
		if is.keysFault.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":%q,"n":%q,"e":%q}]}`, is.kid.Load(),
			base64.RawURLEncoding.EncodeToString(key.N.Bytes()), base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()))
	})
	is.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		is.Server.Close()
		is.Server.Client().CloseIdleConnections()
	})
	return is
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
	claims := claimSet{"iss": is.URL, "aud": resource, "sub": "ada", "scope": "mcp files", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range changed {
		if claims[k] = v; v == nil {
			delete(claims, k)
		}
	}
	text := segment(claimSet{"alg": "RS256", "typ": "at+jwt", "kid": is.kid.Load()}) + "." + segment(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, is.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// forged signs the usual claims with the public key as if it were a shared secret, which careless verifiers accept.
func (is *issuer) forged() string {
	text := segment(claimSet{"alg": "HS256", "kid": "k1"}) + "." + strings.Split(is.token(nil), ".")[1]
	mac := hmac.New(sha256.New, is.key.N.Bytes())
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (is *issuer) verifier() *JWTVerifier { return NewJWTVerifier(is.URL, resource, is.Client()) }

func (is *issuer) options() Options {
	return Options{OAuth: &OAuth{Issuer: is.URL, Resource: resource, Scopes: []string{"mcp"}, Verifier: is.verifier()}}
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
		{"unsigned", segment(claimSet{"alg": "none"}) + "." + parts[1] + ".", 401, `error="invalid_token"`},
		{"signed with the public key as secret", is.forged(), 401, `error="invalid_token"`},
		{"without the scope", is.token(claimSet{"scope": "files"}), 403, `error="insufficient_scope"`},
		{"with scopes that are no string", is.token(claimSet{"scope": 7}), 403, `error="insufficient_scope"`},
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
	p := hub.session(0).peer
	if p.Subject != "ada" || strings.Join(p.Scopes, " ") != "mcp files" {
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
	if _, err := is.verifier().VerifyToken(t.Context(), is.token(nil)); err != nil {
		t.Error(err)
	}
}

// A server that cannot be asked is no verdict on the token, and one that calls itself something else is not believed.
func TestTokensThatCannotBeCheckedNow(t *testing.T) {
	for name, prepare := range map[string]func(*issuer){
		"another issuer's metadata": func(is *issuer) { is.pretends = "https://other.example" },
		"no keys":                   func(is *issuer) { is.keysFault.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			is := newIssuer(t, prepare)
			if _, err := is.verifier().VerifyToken(t.Context(), is.token(nil)); err == nil || errors.Is(err, ErrTokenInvalid) {
				t.Errorf("error: %v", err)
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
	if _, err := v.VerifyToken(t.Context(), is.token(nil)); err != nil {
		t.Fatal(err)
	}
	is.kid.Store("made-up")
	for i := range 20 {
		if _, err := v.VerifyToken(t.Context(), is.token(claimSet{"jti": i})); !errors.Is(err, ErrTokenInvalid) {
			t.Fatalf("a token with an unknown key: %v", err)
		}
	}
	if n := is.asked.Load(); n != 1 {
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
	v := NewJWTVerifier("https://issuer.example", resource, nil)
	now := time.Unix(1000, 0)
	for i := range 3 * maxKnownTokens {
		v.remember(sha256.Sum256([]byte(fmt.Sprint(i))), knownToken{until: now.Add(time.Minute)}, now)
		if len(v.known) > maxKnownTokens {
			t.Fatalf("%d tokens are remembered", len(v.known))
		}
	}
	sum := sha256.Sum256([]byte("x"))
	v.remember(sum, knownToken{claims: Claims{Subject: "ada"}, until: now.Add(time.Minute)}, now)
	if c, ok := v.remembered(sum, now); !ok || c.Subject != "ada" {
		t.Error("a token is forgotten at once")
	}
	if _, ok := v.remembered(sum, now.Add(time.Minute)); ok {
		t.Error("a token is remembered beyond its end")
	}
}

func TestDefaultVerifierAsksTheIssuer(t *testing.T) {
	g := newGuard(nil, &OAuth{Issuer: "no URL", Resource: resource})
	if _, err := g.verifier.VerifyToken(context.Background(), "x"); err == nil {
		t.Error("a token was accepted without an issuer")
	}
}
