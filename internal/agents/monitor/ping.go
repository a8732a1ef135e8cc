package monitor

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// pingTime is how long storing a sign of life may take.
const pingTime = 5 * time.Second

// Intake accepts signs of life over HTTP, as healthchecks does. Its server controls the access.
func (m *Monitor) Intake() http.Handler {
	return &heartbeat.Intake{
		Lookup: m.pinged,
		Sink: func(o heartbeat.Observation) error {
			ctx, cancel := context.WithTimeout(context.Background(), pingTime)
			defer cancel()
			if o.Kind == heartbeat.Log {
				return nil // this ping is no sign of life
			}
			return m.store.setPing(ctx, o)
		},
	}
}

// Registry is the last snapshot of a registry of version 2, which must not be changed; nil for a PIV registry.
func (m *Monitor) Registry() *registry.Registry { return m.seen.Load().own() }

// pinged finds the agent of an address.
func (m *Monitor) pinged(key, id string) (string, error) {
	p := m.seen.Load()
	ctx, cancel := context.WithTimeout(context.Background(), pingTime)
	defer cancel()
	secret, err := m.store.secret(ctx)
	if err != nil {
		return "", err
	}
	given := []byte(id + " " + key)
	for _, agent := range p.Agents {
		if agent.isProject() {
			continue
		}
		want := agent.Key + " " + secret
		if key == "" {
			want = PingUUID(secret, agent.Key) + " "
		}
		if subtle.ConstantTimeCompare(given, []byte(want)) == 1 {
			return agent.Key, nil
		}
	}
	return "", heartbeat.ErrNotFound
}

// secret is the key of a home's ping addresses, created once.
func (s *store) secret(ctx context.Context) (string, error) {
	var key string
	known, err := fact(ctx, s.db, "ping", &key)
	if err != nil || known {
		return key, err
	}
	key = rand.Text()
	return key, setFact(ctx, s.db, "ping", key)
}

// PingUUID is the last part of an agent's ping address, in healthchecks' format.
func PingUUID(secret, agent string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(agent))
	sum := mac.Sum(nil)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562: version 8, custom
	h := hex.EncodeToString(sum[:16])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// PingSecret is the secret of a home's ping addresses, to display them.
func PingSecret(ctx context.Context, opts Options) (string, error) {
	opts = opts.withDefaults()
	s, err := openStore(ctx, opts.Database())
	if err != nil {
		return "", err
	}
	defer s.close()
	return s.secret(ctx)
}
