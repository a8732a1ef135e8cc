package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// defaultPort is where a hub listens.
const defaultPort = "4242"

// certificateYears is how long a hub's certificate is good: it is known by its tokens, which name it, and not by who has signed it.
const certificateYears = 20

func newHub(s *settings) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Run the hub of a fleet; until interrupted",
		Long: `Run the hub of a fleet, on a machine that all others can reach: they connect to it, and it to nobody. It is let in who has a token
(outlive fleet token make NAME, here). What it knows is in outlive's state directory, and most of it is written anew by the machines
when they connect; only the certificate and the tokens cannot be made again.

To have this machine in the fleet as well, let it join its own hub.

EXIT STATUS
  0  interrupted
  1  it cannot listen there, or another one runs
  2  a mistake in the command line`,
		Example: "  outlive fleet hub\n  outlive fleet hub --listen 10.0.0.1:4242",
		Args:    cobra.NoArgs,
		RunE:    does(func(cmd *cobra.Command, _ []string) error { return s.runHub(cmd.Context(), listen) }),
	}
	cmd.Flags().StringVar(&listen, "listen", "0.0.0.0:"+defaultPort, "address of this machine, and port; port 0: any that is free")
	return cmd
}

// identity is what a hub is known by.
type identity struct {
	Version     int    `json:"version"`
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // PEM
}

func (i identity) pin() []byte {
	block, _ := pem.Decode([]byte(i.Certificate)) // it was checked
	sum := sha256.Sum256(block.Bytes)
	return sum[:]
}

// identity is that of this hub, which is made if there is none.
func (s *settings) identity() (identity, tls.Certificate, error) {
	path := filepath.Join(s.hubDir(), "hub.json")
	var id identity
	there, err := readFile(path, &id)
	if err == nil && !there {
		if id, err = newIdentity(); err == nil {
			err = writeFile(path, id)
		}
	}
	if err != nil {
		return id, tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair([]byte(id.Certificate), []byte(id.Key))
	if err != nil {
		err = fmt.Errorf("%s: %w: put a copy of it back; without one, delete it and make new tokens for all machines", path, err)
	}
	return id, pair, err
}

func newIdentity() (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return identity{}, err
	}
	now := time.Now()
	about := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "outlive fleet hub"}, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(certificateYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return identity{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{
		Version:     fileVersion,
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}, nil
}

func (s *settings) runHub(ctx context.Context, listen string) error {
	release, err := hold(filepath.Join(s.hubDir(), "hub.lock"), "a hub")
	if err != nil {
		return err
	}
	defer release()
	_, pair, err := s.identity()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	a := &admission{settings: s}
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{
		Dir: s.hubDir(), Listen: listen, Certificate: pair,
		Admit: func(host, machine, password, from string) error {
			err := a.admit(host, machine, password, from)
			if err != nil {
				log.Warn("a machine was not let in", "name", host, "from", from, "why", err)
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	defer hub.Close()
	defer e.Close()
	if err := e.MakeTables(ctx); err != nil {
		return err
	}
	asked, err := e.Serve(natsengine.EndedAddress, func(_ context.Context, host []byte) []byte { return []byte(hub.HowEnded(string(host))) })
	if err != nil {
		return err
	}
	defer asked()
	h := &hubRun{settings: s, hub: hub, engine: e, log: log}
	return h.followTokens(ctx)
}

// hubRun is a running hub.
type hubRun struct {
	*settings
	hub    *natsengine.Hub
	engine *natsengine.Engine
	log    *slog.Logger
	hashes map[string]string // of the tokens, by host; nil: they were not read yet
}

// followTokens acts on what is done with the tokens until ctx ends.
func (h *hubRun) followTokens(ctx context.Context) error {
	notices, err := fsnotify.NewWatcher()
	if err == nil {
		defer notices.Close()
		err = notices.Add(h.hubDir())
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", h.hubDir(), err)
	}
	if err := h.tokensChanged(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The hub listens on %s. A token for a machine: outlive fleet token make NAME\n", h.hub.Address())
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-notices.Events:
			if filepath.Base(n.Name) != filepath.Base(h.tokensPath()) {
				continue
			}
			if err := h.tokensChanged(ctx); err != nil && ctx.Err() == nil {
				h.log.Error("the tokens cannot be read; who is in stays in", "error", err)
			}
		}
	}
}

// tokensChanged drops who is let in no more, and forgets what was said by them.
func (h *hubRun) tokensChanged(ctx context.Context) error {
	f, err := h.tokens()
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, k := range f.Tokens {
		now[k.Host] = k.Hash
	}
	first, revoked := h.hashes == nil, false
	for host, hash := range h.hashes {
		if now[host] == hash {
			continue
		}
		h.log.Info("a token was revoked", "name", host)
		h.hub.Drop(host)
		revoked = true
	}
	h.hashes = now
	if !first && !revoked {
		return nil // tokens were made or used
	}
	return h.forget(ctx, now)
}

// forget deletes what was said by machines that have no token.
func (h *hubRun) forget(ctx context.Context, known map[string]string) error {
	for _, table := range ownTables {
		keys, err := h.engine.Keys(ctx, table)
		if err != nil {
			return err
		}
		for _, key := range keys {
			names := engine.Names(table, key)
			if len(names) != 1 || known[names[0]] != "" {
				continue
			}
			if err := h.engine.Delete(ctx, key); err != nil && !errors.Is(err, engine.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}

// The tables of a member.
const (
	digestTable = "digest"
	stateTable  = "state"
	newsTable   = "news"
)

// tables are those that are shown; ownTables all that a machine writes of itself.
var (
	tables    = []string{digestTable, stateTable, newsTable}
	ownTables = append([]string{"beat"}, tables...)
)
