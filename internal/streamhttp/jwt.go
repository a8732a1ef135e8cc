package streamhttp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// How long things of an authorization server are taken as they are.
const (
	// tokenMemory is how long a token that was found good is not checked again, unless it expires before. A signature costs
	// tens of microseconds, as much as all the rest of a call.
	tokenMemory = time.Minute
	// metadataRetry is how long a server that could not be reached is not asked again.
	metadataRetry = 5 * time.Second
)

// maxKnownTokens bounds the memory for tokens that were found good.
const maxKnownTokens = 4096

// signatures are the algorithms a token may be signed with: those with a public key. None is left to the token's choice.
var signatures = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// JWTVerifier checks access tokens that are JWTs (RFC 9068): signed by a key the issuer publishes, not expired, and with the
// resource as audience. The issuer is asked for its metadata and keys when they are first needed.
type JWTVerifier struct {
	issuer, resource string
	client           *http.Client

	mu     sync.Mutex
	keys   *oidc.RemoteKeySet // nil: not found yet
	failed time.Time          // when the issuer was last asked in vain
	reason error              // why
	known  map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	claims Claims
	until  time.Time
}

// NewJWTVerifier makes a verifier for tokens of issuer, an https URL, with resource as audience. client asks the issuer;
// nil: one with a timeout of 10 s.
func NewJWTVerifier(issuer, resource string, client *http.Client) *JWTVerifier {
	if client == nil {
		client = &http.Client{Timeout: 10 * time.Second}
	}
	return &JWTVerifier{issuer: issuer, resource: resource, client: client, known: make(map[[sha256.Size]byte]knownToken)}
}

// VerifyToken implements TokenVerifier.
func (v *JWTVerifier) VerifyToken(ctx context.Context, token string) (Claims, error) {
	now := time.Now()
	sum := sha256.Sum256([]byte(token))
	if claims, ok := v.remembered(sum, now); ok {
		return claims, nil
	}
	remote, err := v.keySet(ctx)
	if err != nil {
		return Claims{}, err
	}
	keys := &heldKeys{keys: remote}
	verified, err := oidc.NewVerifier(v.issuer, keys, &oidc.Config{ClientID: v.resource, SupportedSigningAlgs: signatures}).Verify(ctx, token)
	switch {
	case keys.unreachable != nil:
		return Claims{}, fmt.Errorf("get the keys of %s: %w", v.issuer, keys.unreachable)
	case err != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	claims := Claims{Subject: verified.Subject, Scopes: scopesOf(verified)}
	v.remember(sum, knownToken{claims: claims, until: earlier(verified.Expiry, now.Add(tokenMemory))}, now)
	return claims, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (v *JWTVerifier) remembered(sum [sha256.Size]byte, now time.Time) (Claims, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.known[sum]
	return one.claims, ok && now.Before(one.until)
}

func (v *JWTVerifier) remember(sum [sha256.Size]byte, one knownToken, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnownTokens {
		for old, o := range v.known {
			if !now.Before(o.until) {
				delete(v.known, old)
			}
		}
		if len(v.known) >= maxKnownTokens {
			clear(v.known)
		}
	}
	v.known[sum] = one
}

// scopesOf reads the scopes as RFC 9068 has them, one string with spaces, or as some issuers do, in scp, a string or a list.
func scopesOf(token *oidc.IDToken) []string {
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
	}
	if token.Claims(&claims) != nil {
		return nil // a scope that is no string gives no right
	}
	scopes := strings.Fields(claims.Scope)
	var list []string
	var one string
	switch {
	case json.Unmarshal(claims.Scp, &list) == nil:
		scopes = append(scopes, list...)
	case json.Unmarshal(claims.Scp, &one) == nil:
		scopes = append(scopes, strings.Fields(one)...)
	}
	return scopes
}

// heldKeys is a key set for one token, which tells a token that is wrong from keys that could not be had: the error that
// comes out of go-oidc does not.
type heldKeys struct {
	keys        *oidc.RemoteKeySet
	unreachable error
}

// VerifySignature implements oidc.KeySet.
func (h *heldKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := h.keys.VerifySignature(ctx, token)
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys") {
		h.unreachable = err
	}
	return payload, err
}

// keySet returns the issuer's keys, and looks for where they are published if that is not known.
func (v *JWTVerifier) keySet(ctx context.Context) (*oidc.RemoteKeySet, error) {
	v.mu.Lock()
	keys, reason := v.keys, v.reason
	waiting := time.Since(v.failed) < metadataRetry
	v.mu.Unlock()
	switch {
	case keys != nil:
		return keys, nil
	case waiting:
		return nil, reason
	}
	where, err := findKeys(ctx, v.client, v.issuer)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		if !errors.Is(err, context.Canceled) { // that is one client's, who has left
			v.failed, v.reason = time.Now(), err
		}
		return nil, err
	}
	if v.keys == nil {
		client := *v.client
		client.Transport = &sparing{base: client.Transport}
		v.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), where)
	}
	return v.keys, nil
}
