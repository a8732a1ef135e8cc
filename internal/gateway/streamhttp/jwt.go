package streamhttp

import (
	"context"
	"crypto/sha256"
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

// tokenMemory is how long a verified token is not checked again, unless it expires before. A signature costs tens of
// microseconds, as much as the rest of a call.
const tokenMemory = time.Minute

// maxKnownTokens limits the cache of verified tokens.
const maxKnownTokens = 4096

// kinds are the accepted token types (the header's typ, RFC 9068), in lower case: many issuers say only that it is a
// JWT. Other types are refused.
var kinds = []string{"at+jwt", "application/at+jwt", "jwt", "application/jwt", ""}

// errTokenInvalid is wrapped by a verifier's error when the token itself is at fault. Any other says that it cannot be checked now.
var errTokenInvalid = errors.New("the token is not valid")

// verifier checks access tokens that are JWTs (RFC 9068): signed by a key the issuer publishes, not expired, and with the
// resource, or one below it, as audience. The issuer is asked for its metadata and keys when they are first needed.
type verifier struct {
	issuer, resource string
	keys             keySet

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	claims Claims
	until  time.Time
}

// newVerifier makes a verifier for tokens of issuer, an https URL, with resource as audience.
func newVerifier(issuer, resource string) *verifier {
	return &verifier{issuer: issuer, resource: resource, known: make(map[[sha256.Size]byte]knownToken),
		keys: keySet{client: &http.Client{Timeout: 10 * time.Second}, issuer: issuer}}
}

// verify returns the content of a token.
func (v *verifier) verify(ctx context.Context, token string) (Claims, error) {
	now := time.Now()
	sum := sha256.Sum256([]byte(token))
	if claims, ok := v.remembered(sum, now); ok {
		return claims, nil
	}
	payload, header, err := v.keys.verify(ctx, token)
	if errors.Is(err, errUnreachable) {
		return Claims{}, fmt.Errorf("get the keys of %s: %w", v.issuer, err)
	}
	var claims Claims
	if err == nil {
		claims, err = v.read(ctx, token, payload, header)
	}
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", errTokenInvalid, err)
	}
	v.remember(sum, knownToken{claims: claims, until: deadline.Earliest(claims.Expires, now.Add(tokenMemory))})
	return claims, nil
}

// proven is a token's content whose signature was verified: go-oidc checks the rest.
type proven []byte

// VerifySignature implements oidc.KeySet.
func (p proven) VerifySignature(context.Context, string) ([]byte, error) { return p, nil }

// read reads a token whose signature was verified. It refuses those that were signed for another purpose or audience, and those without a
// subject.
func (v *verifier) read(ctx context.Context, token string, payload proven, header jose.Header) (Claims, error) {
	config := &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: []string{header.Algorithm}}
	verified, err := oidc.NewVerifier(v.issuer, payload, config).Verify(ctx, token)
	if err != nil {
		return Claims{}, err
	}
	for name, kind := range header.ExtraHeaders {
		text, isText := kind.(string)
		typed := strings.EqualFold(string(name), jose.HeaderType) // a name in capitals counts, too
		if typed && (!isText || !slices.Contains(kinds, strings.ToLower(text))) {
			return Claims{}, fmt.Errorf("its type is %.40q", fmt.Sprint(kind))
		}
	}
	below := strings.TrimSuffix(v.resource, "/") + "/"
	views := slices.DeleteFunc(slices.Clone(verified.Audience), func(one string) bool { return !strings.HasPrefix(one, below) })
	ours := slices.Contains(verified.Audience, v.resource)
	switch {
	case verified.AccessTokenHash != "":
		return Claims{}, errors.New("it is an ID token")
	case verified.Subject == "":
		return Claims{}, errors.New("it names no subject")
	case !ours && len(views) == 0:
		return Claims{}, fmt.Errorf("it is for %.200q", verified.Audience)
	case ours:
		views = nil
	}
	return Claims{Subject: verified.Subject, Audience: views, Scopes: scopesOf(payload), Expires: verified.Expiry}, nil
}

func (v *verifier) remembered(sum [sha256.Size]byte, now time.Time) (Claims, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.known[sum]
	return one.claims, ok && now.Before(one.until)
}

func (v *verifier) remember(sum [sha256.Size]byte, one knownToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnownTokens {
		clear(v.known)
	}
	v.known[sum] = one
}

// scopesOf reads the scopes of RFC 9068, one string with spaces, or of scp, a string or a list.
func scopesOf(payload []byte) []string {
	var claims struct {
		Scope string          `json:"scope"`
		Scp   json.RawMessage `json:"scp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
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
