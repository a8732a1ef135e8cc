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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// defaultPort is where a hub listens.
const defaultPort = "4242"

// certificateYears is how long a hub's certificate is good: it is known by its tokens, which name it, and not by who has signed it.
const certificateYears = 20

// noCluster is said to whoever starts or joins three hubs that are one, as the version before could.
const noCluster = "there are no hubs of three any more: have one hub, with their hub.json and tokens.json, or join three NATS servers in their place (outlive fleet join --nats)"

func newHub(s *settings) *cobra.Command {
	var listen, cluster, self string
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Run the hub of a fleet; until interrupted",
		Long: `Run the hub of a fleet, on a machine that all others can reach: they connect to it, and it to nobody. It is let in who has a token
(outlive fleet token make NAME, here). What it knows is in outlive's state directory, and most of it is written anew by the machines
when they connect; only the certificate and the tokens cannot be made again.

To have this machine in the fleet as well, let it join its own hub.

OUTLIVE_HUB_IDENTITY is the path of hub.json if it is elsewhere, such as in a secret of a platform.

A fleet that is to survive the loss of the hub's machine joins a cluster of NATS servers instead: outlive fleet join --nats.

EXIT STATUS
  0  interrupted
  1  it cannot listen there, or another one runs
  2  a mistake in the command line`,
		Example: "  outlive fleet hub\n  outlive fleet hub --listen 10.0.0.1:4242",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cluster != "" || self != "" {
				return wrong("--cluster: %s", noCluster)
			}
			return s.runHub(cmd.Context(), listen)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&listen, "listen", "0.0.0.0:"+defaultPort, "address of this machine, and port; port 0: any that is free")
	fl.StringVar(&cluster, "cluster", "", "")
	fl.StringVar(&self, "self", "", "")
	for _, name := range []string{"cluster", "self"} {
		_ = fl.MarkHidden(name) // it is there
	}
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

// identityPath is where a hub's certificate is: in its directory, or where a platform puts secrets.
func (s *settings) identityPath() string {
	if path := os.Getenv("OUTLIVE_HUB_IDENTITY"); path != "" {
		return path
	}
	return filepath.Join(s.hubDir(), "hub.json")
}

// identity is that of this hub, which is made if there is none.
func (s *settings) identity() (identity, tls.Certificate, error) {
	path := s.identityPath()
	var id identity
	there, err := readFile(path, &id)
	if err == nil && !there {
		id, err = makeIdentity(path)
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

// makeIdentity makes the identity at a path, one process at a time. Whoever comes later takes the one that is there then.
func makeIdentity(path string) (id identity, err error) {
	unlock, err := lock(path + ".lock")
	if err != nil {
		return id, err
	}
	defer unlock()
	if there, err := readFile(path, &id); there || err != nil {
		return id, err
	}
	if id, err = newIdentity(); err == nil {
		err = writeFile(path, id)
	}
	return id, err
}

func newIdentity() (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	now := time.Now()
	about := &x509.Certificate{
		Subject: pkix.Name{CommonName: "outlive fleet hub"}, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.AddDate(certificateYears, 0, 0),
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
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	release, err := hold(filepath.Join(s.hubDir(), "hub.lock"), "a hub")
	if err != nil {
		return err
	}
	defer release()
	_, pair, err := s.identity()
	if err != nil {
		return err
	}
	a := &admission{settings: s}
	started := make(chan struct{}) // nobody is let in before
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{
		Dir: s.hubDir(), Listen: listen, Certificate: pair,
		Admit: func(host, machine, password, from string) error {
			<-started
			return a.admit(host, machine, password, from)
		},
		Refused: func(host, from string, why error) {
			log.Warn("a machine was not let in", "name", host, "from", from, "why", why)
		},
	})
	if err != nil {
		return err
	}
	defer hub.Close()
	defer e.Close()
	h := &hubRun{settings: s, hub: hub, engine: e, log: log, forgets: make(chan struct{}, 1)}
	return h.run(ctx, e, started)
}

// run runs a hub that has been started, until ctx ends. Machines are let in when started is closed.
func (h *hubRun) run(ctx context.Context, e *natsengine.Engine, started chan<- struct{}) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := sync.OnceFunc(func() { close(started) })
	defer open()
	if err := e.MakeTables(ctx); err != nil {
		return err
	}
	open()
	asked, err := h.hub.Serve(e)
	if err != nil {
		return err
	}
	defer asked()
	parts.Go(func() { h.forgetting(ctx) })
	return h.followTokens(ctx)
}

// forgetLimit is how long it may take to delete what machines without a token have said.
const forgetLimit = 20 * time.Second

// forgetAgain is when that is done once more: what a machine has sent just before it was cut off may be written later.
const forgetAgain = 5 * time.Second

// hubRun is a running hub.
type hubRun struct {
	*settings
	hub     *natsengine.Hub
	engine  writtenTables
	log     *slog.Logger
	hashes  map[string]string // of the tokens that are good, by host; nil: they were not read yet
	forgets chan struct{}     // what machines without a token have said is to be deleted
}

// writtenTables are what machines have said, as far as a hub deletes it.
type writtenTables interface {
	Written(ctx context.Context) (keys []string, last engine.Revision, err error)
	Get(ctx context.Context, key string) (engine.Entry, error)
	DeleteAt(ctx context.Context, key string, revision engine.Revision) error
}

// lookEvery is how often it is looked whether the file of the tokens is another one.
const lookEvery = time.Second

// followTokens acts on what is done with the tokens until ctx ends.
func (h *hubRun) followTokens(ctx context.Context) error {
	if err := h.tokensChanged(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The hub listens on %s. A token for a machine: outlive fleet token make NAME\n", h.hub.Address())
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := "" // of what is wrong with the file
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := h.tokensChanged()
		if err != nil && err.Error() != said {
			h.log.Error("the tokens cannot be read; who is in stays in", "error", err)
		}
		if said = ""; err != nil {
			said = err.Error()
		}
	}
}

// tokensChanged drops who is let in no more, and has forgotten what was said by them.
func (h *hubRun) tokensChanged() error {
	f, err := h.tokens()
	if err != nil {
		return err
	}
	now := f.good()
	due := h.hashes == nil
	for host, hash := range h.hashes {
		if now[host] != hash {
			h.log.Info("a token was revoked", "name", host)
			due = true
		}
	}
	if h.hub.Drop(func(host, hash string) bool { return now[host] == hash }) || due {
		select {
		case h.forgets <- struct{}{}:
		default:
		}
	}
	h.hashes = now
	return nil
}

// forgetting deletes what machines without a token have said, whenever that is due and once more after that, until ctx ends. Where it
// fails it is tried again.
func (h *hubRun) forgetting(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			again = nil
		case <-h.forgets:
			again = time.After(forgetAgain)
		}
		for try := 1; ctx.Err() == nil; try++ {
			err := h.forget(ctx)
			if err == nil {
				break
			}
			if try == 1 {
				h.log.Warn("what machines without a token have said is not deleted yet; it is tried again", "why", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
		}
	}
}

// forget deletes what was said by machines that have no token. It is read before the tokens are: a machine may be let in, and say something, at
// any moment.
func (h *hubRun) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forgetLimit)
	defer cancel()
	keys, last, err := h.engine.Written(ctx)
	if err != nil {
		return err
	}
	return h.forgetOf(ctx, keys, last)
}

// forgetOf deletes what, of all that was said, is of machines that have no token now. What has been said since the last revision stays.
func (h *hubRun) forgetOf(ctx context.Context, keys []string, last engine.Revision) error {
	f, err := h.tokens()
	if err != nil {
		return err
	}
	known := f.good()
	for _, key := range keys {
		table, _, _ := strings.Cut(key, ".")
		if names := engine.Names(table, key); !slices.Contains(tables, table) || len(names) != 1 || known[names[0]] != "" {
			continue
		}
		e, err := h.engine.Get(ctx, key)
		if err == nil && e.Revision <= last {
			err = h.engine.DeleteAt(ctx, key, e.Revision)
		}
		if err != nil && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrConflict) {
			return err
		}
	}
	return nil
}

// The tables of a member.
const (
	digestTable = judge.Digests
	stateTable  = "state"
	newsTable   = "news"
)

// tables are all that a machine writes of itself.
var tables = natsengine.OwnTables
