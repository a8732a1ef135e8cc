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
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// defaultHubsPort is where the hubs of a fleet reach each other.
const defaultHubsPort = "4243"

// hubFlags are those of the verb.
type hubFlags struct {
	listen, self string
	cluster      []string
}

func newHub(s *settings) *cobra.Command {
	var f hubFlags
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Run the hub of a fleet; until interrupted",
		Long: `Run the hub of a fleet, on a machine that all others can reach: they connect to it, and it to nobody. It is let in who has a token
(outlive fleet token make NAME, here). What it knows is in outlive's state directory, and most of it is written anew by the machines
when they connect; only the certificate and the tokens cannot be made again.

To have this machine in the fleet as well, let it join its own hub.

Three hubs on three machines are one with --cluster, which names all of them as HOST or HOST:PORT, the same on each, and --self, which of
them this one is. While two of them reach each other the fleet goes on, and the third one gets what it has missed when it is back. They know
each other by their certificate: copy hub.json of the first one (outlive fleet token make makes it) to the others before they are started.
A token that is made or revoked on one is so on all. OUTLIVE_HUB_IDENTITY is the path of hub.json if it is elsewhere, such as in a secret
of a platform.

EXIT STATUS
  0  interrupted
  1  it cannot listen there, another one runs, or hub.json is missing
  2  a mistake in the command line`,
		Example: "  outlive fleet hub\n  outlive fleet hub --listen 10.0.0.1:4242\n  outlive fleet hub --cluster hub1.example,hub2.example,hub3.example --self hub1.example",
		Args:    cobra.NoArgs,
		RunE:    does(func(cmd *cobra.Command, _ []string) error { return s.runHub(cmd.Context(), f) }),
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.listen, "listen", "0.0.0.0:"+defaultPort, "address of this machine, and port; port 0: any that is free")
	fl.StringSliceVar(&f.cluster, "cluster", nil, "the three hubs of the fleet, this one among them: `HOST,HOST,HOST`, each with :PORT where the hubs reach it; default: "+defaultHubsPort)
	fl.StringVar(&f.self, "self", "", "with --cluster: which `HOST` of it this one is")
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

func (s *settings) runHub(ctx context.Context, f hubFlags) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cluster, err := f.hubs(log)
	if err != nil {
		return err
	}
	release, err := hold(filepath.Join(s.hubDir(), "hub.lock"), "a hub")
	if err != nil {
		return err
	}
	defer release()
	dir, err := s.storeDir(cluster != nil)
	if err != nil {
		return err
	}
	_, pair, err := s.identity()
	if err != nil {
		return err
	}
	a := &admission{settings: s}
	started := make(chan struct{}) // nobody is let in before
	hub, e, err := natsengine.StartHub(natsengine.HubOptions{
		Dir: dir, Listen: f.listen, Certificate: pair, Cluster: cluster,
		Admit: func(host, machine, password, from string) error {
			<-started
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
	h := &hubRun{settings: s, hub: hub, engine: e, log: log, forgets: make(chan struct{}, 1)}
	if cluster != nil {
		h.share = newShare(s, e, cluster.Hubs, cluster.Self, hub.Serves, log)
		a.share = h.share
	}
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
	if h.share == nil {
		if err := e.MakeTables(ctx); err != nil {
			return err
		}
	} else {
		stop, err := h.share.serve()
		if err != nil {
			return err
		}
		defer stop()
		parts.Go(func() { makeTables(ctx, e) })
		parts.Go(func() { h.share.run(ctx) })
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

// storeDir is where a hub keeps what machines have said: one of several not where one alone does, since NATS deletes what the other has kept.
// It has to be told which of the two it is: a hub of three that is started alone is a fleet of its own.
func (s *settings) storeDir(several bool) (string, error) {
	dir := filepath.Join(s.hubDir(), "cluster")
	if several {
		if _, err := os.Stat(s.identityPath()); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is missing: copy that of another hub of this fleet; on the first one, outlive fleet token make NAME makes it", s.identityPath())
		}
		return dir, nil
	}
	if _, err := os.Stat(dir); err == nil {
		return "", fmt.Errorf("this hub is one of several: start it with --cluster and --self, or, for it to be the only one, stop the others and delete %s", dir)
	}
	return s.hubDir(), nil
}

// hubs are those of --cluster; nil: there is one.
func (f hubFlags) hubs(log *slog.Logger) (*natsengine.Cluster, error) {
	if len(f.cluster) == 0 {
		if f.self != "" {
			return nil, wrong("--self goes with --cluster")
		}
		return nil, nil
	}
	if len(f.cluster) != hubsOfCluster {
		return nil, wrong("--cluster: want three hubs, HOST,HOST,HOST: of fewer no majority is left when one is lost")
	}
	c := &natsengine.Cluster{Self: -1}
	for _, text := range f.cluster {
		address, err := hostPort(text, defaultHubsPort)
		if err != nil {
			return nil, wrong("--cluster: %q: want HOST or HOST:PORT of a hub", text)
		}
		if slices.Contains(c.Hubs, address) {
			return nil, wrong("--cluster: %s is there twice", address)
		}
		c.Hubs = append(c.Hubs, address)
	}
	if f.self == "" {
		return nil, wrong("--self is missing: which of %s is this hub?", strings.Join(f.cluster, ", "))
	}
	self, err := hostPort(f.self, defaultHubsPort)
	if c.Self = slices.Index(c.Hubs, self); err != nil || c.Self < 0 {
		return nil, wrong("--self %s: it is none of --cluster", f.self)
	}
	var mu sync.Mutex
	told := time.Time{}
	c.Stranger = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(told) >= time.Minute {
			told = time.Now()
			log.Warn("another hub is not one of this fleet", "why", err)
		}
	}
	c.Changed = func(p natsengine.Peer) {
		if p.Connected {
			log.Info("another hub is there", "hub", p.Name)
			return
		}
		log.Warn("another hub is away", "hub", p.Name)
	}
	c.Serves = func(serves bool, beyond string) {
		if serves {
			log.Info("this hub reaches another one: they decide together")
			return
		}
		if beyond != "" {
			log.Warn("this hub does not reach one that others reach; machines are sent to those until it does", "hub", beyond)
			return
		}
		log.Warn("this hub reaches no other one; machines are sent away until it does")
	}
	return c, nil
}

const hubsOfCluster = 3

// forgetLimit is how long it may take to delete what machines without a token have said.
const forgetLimit = 20 * time.Second

// forgetAgain is when that is done once more: what a machine has sent just before it was cut off, by another hub that did not know better
// yet, may be written later.
const forgetAgain = 5 * time.Second

// makeTables tries until the hubs have a majority that makes them.
func makeTables(ctx context.Context, e *natsengine.Engine) {
	for {
		if e.MakeTables(ctx, natsengine.TokenTable) == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryAgain):
		}
	}
}

// hubRun is a running hub.
type hubRun struct {
	*settings
	hub     *natsengine.Hub
	engine  writtenTables
	log     *slog.Logger
	share   *share            // nil: there is no other hub
	hashes  map[string]string // of the tokens that are good, by host; nil: they were not read yet
	forgets chan struct{}     // what machines without a token have said is to be deleted
}

// writtenTables are what machines have said, as far as a hub deletes it.
type writtenTables interface {
	Written(ctx context.Context, table string) ([]engine.Entry, error)
	DeleteAt(ctx context.Context, key string, revision engine.Revision) error
}

// lookEvery is how often the tokens are looked at where their file cannot be watched.
const lookEvery = 2 * time.Second

// notices are the events of the hub's directory, until stop is called. Where the system has no watcher left (128 for each user, by default of
// Linux) the hub looks by itself.
func (h *hubRun) notices() (events <-chan fsnotify.Event, looks <-chan time.Time, stop func()) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(h.hubDir()); err == nil {
			return watcher.Events, nil, func() { _ = watcher.Close() }
		}
		_ = watcher.Close()
	}
	h.log.Warn("the file of the tokens cannot be watched; it is looked at every "+lookEvery.String(), "why", err)
	tick := time.NewTicker(lookEvery)
	return nil, tick.C, tick.Stop
}

// followTokens acts on what is done with the tokens until ctx ends.
func (h *hubRun) followTokens(ctx context.Context) error {
	events, looks, stop := h.notices()
	defer stop()
	if err := h.tokensChanged(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The hub listens on %s. A token for a machine: outlive fleet token make NAME\n", h.hub.Address())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks:
		case n := <-events:
			if filepath.Base(n.Name) != filepath.Base(h.tokensPath()) {
				continue
			}
		}
		if err := h.tokensChanged(); err != nil && ctx.Err() == nil {
			h.log.Error("the tokens cannot be read; who is in stays in", "error", err)
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
	if len(h.hub.Drop(func(host, hash string) bool { return now[host] == hash })) > 0 || due {
		select {
		case h.forgets <- struct{}{}:
		default:
		}
	}
	h.hashes = now
	if h.share != nil {
		h.share.kick()
	}
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
			if try == 2 { // hubs that were started a moment ago have no majority at the first one
				h.log.Warn("what machines without a token have said is not deleted yet; it is tried again", "why", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(shareAgain):
			}
		}
	}
}

// forget deletes what was said by machines that have no token.
func (h *hubRun) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forgetLimit)
	defer cancel()
	said, err := h.said(ctx)
	if err != nil {
		return err
	}
	return h.forgetOf(ctx, said)
}

// said is what machines have said, by table. It is read before the tokens are: a machine may be let in, and say something, at any moment.
func (h *hubRun) said(ctx context.Context) (map[string][]engine.Entry, error) {
	said := map[string][]engine.Entry{}
	for _, table := range ownTables {
		entries, err := h.engine.Written(ctx, table)
		if err != nil {
			return nil, err
		}
		said[table] = entries
	}
	return said, nil
}

// forgetOf deletes what, of all that was said, is of machines that have no token now. What has been said since stays.
func (h *hubRun) forgetOf(ctx context.Context, said map[string][]engine.Entry) error {
	if h.share != nil {
		if err := h.share.catchUp(ctx); err != nil {
			return err // the tokens of another hub may be missing here
		}
	}
	f, err := h.tokens()
	if err != nil {
		return err
	}
	known := f.good()
	for table, entries := range said {
		for _, one := range entries {
			names := engine.Names(table, one.Key)
			if len(names) != 1 || known[names[0]] != "" {
				continue
			}
			if err := h.engine.DeleteAt(ctx, one.Key, one.Revision); err != nil && !errors.Is(err, engine.ErrConflict) {
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
