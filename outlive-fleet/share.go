package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

const (
	shareAgain = time.Second     // before what the others could not be told is tried again
	levelLimit = time.Second     // for another hub to write down what it knows
	useLimit   = 4 * time.Second // for the first use of a token to be agreed on
	usesAtOnce = 32
)

// share keeps what the hubs of a fleet know of the tokens the same: each has its file, and all of them a table that machines cannot read.
// Of a host's two records the one with the higher serial is true ([known.over]). What the file has more, such as a token that was made while this
// hub was down, is written to the table; what the table has more, to the file. Which machine was the first to use a token the table
// alone decides.
type share struct {
	*settings
	engine engine.Engine
	hubs   []string
	self   int         // of them
	serves func() bool // whether this hub reaches another one
	log    *slog.Logger
	kicks  chan struct{}

	levelling sync.Mutex

	mu       sync.Mutex
	seen     map[string]shared // the table, by host
	revision engine.Revision   // the last that was read of it
	synced   bool              // it was read whole once
	changed  chan struct{}     // closed with every change
}

// shared is a record of the table.
type shared struct {
	known
	revision engine.Revision
}

func newShare(s *settings, e engine.Engine, hubs []string, self int, serves func() bool, log *slog.Logger) *share {
	return &share{settings: s, engine: e, hubs: hubs, self: self, serves: serves, log: log, kicks: make(chan struct{}, 1), seen: map[string]shared{}, changed: make(chan struct{})}
}

// levelAddress is where a hub is asked to write to the table what its file has more.
func levelAddress(hub int) string { return "hub.level." + strconv.Itoa(hub) }

// serve answers the other hubs.
func (s *share) serve() (stop func(), err error) {
	return s.engine.Serve(levelAddress(s.self), func(ctx context.Context, _ []byte) []byte {
		ctx, cancel := context.WithTimeout(ctx, levelLimit)
		defer cancel()
		_ = s.level(ctx) // it is tried again, and told there
		return nil
	})
}

// others has the other hubs write to the table what they know. One that is away cannot.
func (s *share) others(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, levelLimit)
	defer cancel()
	var all sync.WaitGroup
	for n := range s.hubs {
		if n != s.self {
			all.Go(func() { _, _ = s.engine.Request(ctx, levelAddress(n), nil) })
		}
	}
	all.Wait()
}

func tokenKey(host string) string { return engine.Key(natsengine.TokenTable, host) }

// run reads the table and levels it with the file, until ctx ends.
func (s *share) run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { s.read(ctx) })
	again := time.NewTicker(shareAgain)
	defer again.Stop()
	for told := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.kicks:
		case <-again.C:
		}
		if err := s.level(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the tokens are not the same on all hubs yet; it is tried again", "why", err)
		}
		if !told && s.tableRead() && s.serves() {
			told = true
			s.log.Info("the hubs share their tokens; machines are let in")
		}
	}
}

// tableRead reports whether the table was read whole.
func (s *share) tableRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// kick has file and table levelled.
func (s *share) kick() {
	select {
	case s.kicks <- struct{}{}:
	default:
	}
}

func (s *share) read(ctx context.Context) {
	for ctx.Err() == nil {
		changes, err := s.engine.Watch(ctx, natsengine.TokenTable)
		if err != nil { // the hubs have no majority yet
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
			continue
		}
		for c := range changes {
			s.take(c)
		}
	}
}

func (s *share) take(c engine.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = s.synced || c.Synced
	s.revision = max(s.revision, c.Revision)
	if names := engine.Names(natsengine.TokenTable, c.Key); len(names) == 1 {
		var k known
		if c.Gone { // the hubs have lost it
			delete(s.seen, names[0])
		} else if json.Unmarshal(c.Value, &k) == nil && k.Host == names[0] {
			s.seen[names[0]] = shared{k, c.Revision}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.kick()
}

// at is what the table has of a host.
func (s *share) at(host string) (one shared, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, there = s.seen[host]
	return one, there
}

// level brings file and table to the same.
func (s *share) level(ctx context.Context) error {
	s.levelling.Lock()
	defer s.levelling.Unlock()
	s.mu.Lock()
	synced, table := s.synced, maps.Clone(s.seen)
	s.mu.Unlock()
	if !synced {
		return nil
	}
	f, err := s.tokens()
	if err != nil {
		return err
	}
	if f.behind(table) {
		err := s.changeTokens(func(now *tokenFile) error {
			now.take(table)
			f = *now
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, k := range f.Tokens {
		if one, there := table[k.Host]; there && !k.over(one.known) {
			continue
		}
		if err := s.put(ctx, k, table[k.Host].revision); err != nil && !errors.Is(err, engine.ErrConflict) { // then another one is told soon
			return err
		}
	}
	return nil
}

// behind reports whether the table has something that the file has not. Of two records with the same serial the table's is true.
func (f *tokenFile) behind(table map[string]shared) bool {
	there := map[string]known{}
	for _, k := range f.Tokens {
		there[k.Host] = k
	}
	for host, one := range table {
		if k, is := there[host]; !is || !k.over(one.known) && !k.same(one.known) {
			return true
		}
	}
	return false
}

// over reports whether a record is true, and not another one of the same host, which the table has.
func (k known) over(other known) bool {
	if k.Serial == other.Serial {
		return !k.good() && other.good() // it was revoked here while it was used there
	}
	return k.Serial > other.Serial
}

func (k known) same(other known) bool {
	return k.Serial == other.Serial && k.Hash == other.Hash && k.Machine == other.Machine && k.good() == other.good()
}

// take takes what the table has more.
func (f *tokenFile) take(table map[string]shared) {
	for host, one := range table {
		switch at := f.find(host); {
		case at < 0:
			f.Tokens = append(f.Tokens, one.known)
		case !f.Tokens[at].over(one.known):
			f.Tokens[at] = one.known
		}
	}
}

func (s *share) put(ctx context.Context, k known, before engine.Revision) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	revision, err := s.engine.CAS(ctx, tokenKey(k.Host), text, before)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, there := s.seen[k.Host]; !there || one.revision < revision {
		s.seen[k.Host] = shared{k, revision}
	}
	return nil
}

// use has the table say of each token whether its user is the first. Its error is why it is not.
func (s *share) use(uses []*firstUse) {
	ctx, cancel := context.WithTimeout(context.Background(), useLimit)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, usesAtOnce)
	for _, u := range uses {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			u.err = s.useOne(ctx, u)
		})
	}
}

func (s *share) useOne(ctx context.Context, u *firstUse) error {
	for {
		f, err := s.tokens()
		if err != nil {
			return err
		}
		var k known
		if at := f.find(u.host); at >= 0 {
			k = f.Tokens[at]
		}
		one, there := s.at(u.host)
		if there && !k.over(one.known) {
			k = one.known
		}
		if err := k.check(u.machine, u.secret); err != nil || k.Machine != "" {
			return err
		}
		k.use(u.machine, u.from)
		if err := s.put(ctx, k, one.revision); !errors.Is(err, engine.ErrConflict) {
			return err
		}
		if err := s.catchUp(ctx); err != nil {
			return err
		}
	}
}

// catchUp returns when everything that the hubs knew at the time of the call was read, and the file has it.
func (s *share) catchUp(ctx context.Context) error {
	s.others(ctx)
	revision, err := s.engine.Put(ctx, engine.Key(natsengine.TokenTable, "mark", strconv.Itoa(s.self)), []byte{})
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		there, changed := s.revision >= revision && s.synced, s.changed
		s.mu.Unlock()
		if there {
			return s.level(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
