package streamhttp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

// How long data of an authorization server are cached.
const (
	// tokenMemory is how long a verified token is not checked again, unless it expires before. A signature costs tens of
	// microseconds, as much as the rest of a call.
	tokenMemory = time.Minute
	// metadataRetry is how long an unreachable server is not asked again.
	metadataRetry = 5 * time.Second
)

// maxKnownTokens limits the cache of verified tokens.
const maxKnownTokens = 4096

// signatures are the accepted algorithms, all with public keys. If a key names its algorithm, only that one is accepted.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

func signatureNames() (names []string) {
	for _, one := range signatures {
		names = append(names, string(one))
	}
	return names
}

// kinds are the accepted token types (the header's typ, RFC 9068), in lower case: many issuers say only that it is a
// JWT. Other types are refused.
var kinds = []string{"at+jwt", "application/at+jwt", "jwt", "application/jwt", ""}

// JWTVerifier checks access tokens that are JWTs (RFC 9068): signed by a key the issuer publishes, not expired, and with the
// resource, or one below it, as audience. The issuer is asked for its metadata and keys when they are first needed.
type JWTVerifier struct {
	issuer, resource string
	keys             *keySet

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownToken
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
	return &JWTVerifier{issuer: issuer, resource: resource, keys: &keySet{client: client, issuer: issuer}, known: make(map[[sha256.Size]byte]knownToken)}
}

// VerifyToken implements TokenVerifier.
func (v *JWTVerifier) VerifyToken(ctx context.Context, token string) (Claims, error) {
	now := time.Now()
	sum := sha256.Sum256([]byte(token))
	if claims, ok := v.remembered(sum, now); ok {
		return claims, nil
	}
	signature := &signed{by: v.keys}
	verified, err := oidc.NewVerifier(v.issuer, signature, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: signatureNames()}).Verify(ctx, token)
	switch {
	case errors.Is(signature.err, errUnreachable):
		return Claims{}, fmt.Errorf("get the keys of %s: %w", v.issuer, signature.err)
	case err != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	if err := isAccessToken(token, verified); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	audience, err := v.audienceOf(verified)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrTokenInvalid, err)
	}
	claims := Claims{Subject: verified.Subject, Audience: audience, Scopes: scopesOf(verified), Expires: verified.Expiry}
	v.remember(sum, knownToken{claims: claims, until: deadline.Earliest(verified.Expiry, now.Add(tokenMemory))}, now)
	return claims, nil
}

// audienceOf returns which resources below ours the token is for; nil: it is for ours.
func (v *JWTVerifier) audienceOf(verified *oidc.IDToken) (views []string, err error) {
	below := strings.TrimSuffix(v.resource, "/") + "/"
	for _, one := range verified.Audience {
		switch {
		case one == v.resource:
			return nil, nil
		case strings.HasPrefix(one, below):
			views = append(views, one)
		}
	}
	if views == nil {
		return nil, fmt.Errorf("it is for %.200q", verified.Audience)
	}
	return views, nil
}

// isAccessToken refuses tokens that were signed for another purpose, and those without a subject.
func isAccessToken(token string, verified *oidc.IDToken) error {
	var header struct {
		Type string `json:"typ"`
	}
	encoded, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(text, &header) != nil {
		return errors.New("its header cannot be read")
	}
	switch {
	case !slices.Contains(kinds, strings.ToLower(header.Type)):
		return fmt.Errorf("its type is %.40q", header.Type)
	case verified.AccessTokenHash != "":
		return errors.New("it is an ID token")
	case verified.Subject == "":
		return errors.New("it names no subject")
	}
	return nil
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

// scopesOf reads the scopes of RFC 9068, one string with spaces, or of scp, a string or a list.
func scopesOf(token *oidc.IDToken) []string {
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
	}
	if token.Claims(&claims) != nil {
		return nil // a scope that is not a string is ignored
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
