package streamhttp

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keysMemory is how long the issuer's keys are not fetched again. A token with an unknown key id causes a fetch, and
	// anybody can make such tokens. After a fetch that has failed it is metadataRetry.
	keysMemory = 10 * time.Second
	// metadataRetry is how long an unreachable server is not asked again.
	metadataRetry = 5 * time.Second
)

// signatures are the accepted algorithms, all with public keys. If a key names its algorithm, only that one is accepted.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// leastRSA is the shortest accepted RSA key, in bits (RFC 7518, 3.3).
const leastRSA = 2048

// errUnreachable is wrapped by errors of fetching keys, which say nothing about the token.
var errUnreachable = errors.New("the keys cannot be fetched")

// keySet is the keys of one issuer.
type keySet struct {
	client *http.Client
	issuer string

	latest atomic.Pointer[published] // nil: none were fetched yet

	fetching sync.Mutex // one fetches for all that wait; it guards what follows
	where    string     // the keys are published; "": not found yet
	failed   time.Time  // when they were asked for last in vain
	reason   error      // why; nil: the last time they were given
}

// published are the keys of an issuer at one time.
type published struct {
	when time.Time
	keys []jose.JSONWebKey
}

// verify returns a token's payload and header, if one of the issuer's keys has signed it.
func (k *keySet) verify(ctx context.Context, token string) (payload []byte, header jose.Header, err error) {
	jws, err := jose.ParseSignedCompact(token, signatures)
	if err != nil {
		return nil, header, fmt.Errorf("read the token: %w", err)
	}
	header = jws.Signatures[0].Header // a compact token has one
	var seen *published
	for {
		latest, err := k.newerThan(ctx, seen)
		if err != nil {
			return nil, header, err
		}
		if latest == seen {
			return nil, header, errors.New("no key of the issuer fits the signature")
		}
		for _, key := range latest.keys {
			if !fits(&key, header) {
				continue
			}
			if payload, err := jws.Verify(&key); err == nil {
				return payload, header, nil
			}
		}
		seen = latest
	}
}

// newerThan returns the known keys. If these were seen already they are fetched again, unless that was done or tried just now. Who needs no
// others does not wait for a fetch.
func (k *keySet) newerThan(ctx context.Context, seen *published) (*published, error) {
	if latest := k.latest.Load(); latest != seen {
		return latest, nil
	}
	k.fetching.Lock()
	defer k.fetching.Unlock()
	switch latest := k.latest.Load(); {
	case latest != seen: // done while this one waited
		return latest, nil
	case k.reason != nil && time.Since(k.failed) < metadataRetry:
		return nil, k.reason
	case seen != nil && time.Since(seen.when) < keysMemory:
		return seen, nil
	}
	keys, err := k.fetch(context.WithoutCancel(ctx)) // for all that wait, even if this one leaves
	if err != nil {
		k.failed, k.reason = time.Now(), fmt.Errorf("%w: %w", errUnreachable, err)
		return nil, k.reason
	}
	latest := &published{time.Now(), keys}
	k.reason = nil
	k.latest.Store(latest)
	return latest, nil
}

// fits reports whether a key may have made a signature: it is for signatures, for this algorithm, and long enough.
func fits(key *jose.JSONWebKey, header jose.Header) bool {
	if header.KeyID != "" && key.KeyID != header.KeyID || key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != header.Algorithm {
		return false
	}
	if public, ok := key.Key.(*rsa.PublicKey); ok && public.N.BitLen() < leastRSA {
		return false
	}
	return key.Valid() && key.IsPublic()
}

// fetch asks for the keys, after finding where they are published.
func (k *keySet) fetch(ctx context.Context) (keys []jose.JSONWebKey, err error) {
	if k.where == "" {
		if k.where, err = findKeys(ctx, k.client, k.issuer); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := getJSON(ctx, k.client, k.where, &set); err != nil {
		return nil, err
	}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil { // keys of unknown types are skipped
			keys = append(keys, key)
		}
	}
	return slices.Clip(keys), nil
}
