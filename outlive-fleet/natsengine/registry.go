package natsengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
)

const (
	bucketPrefix = "outlive_"
	// saidBucket has all tables that are watched, leaseBucket the leases. Sessions have one of their own.
	saidBucket  = "said"
	leaseBucket = "lease"
	// said is how the subjects begin of what machines say.
	said = "$KV." + bucketPrefix + saidBucket + "."
	// saidBytes is how much machines may say. For 1,000 of them: 512 MB with what is allowed for the state of each, 128 MB for their last events,
	// and 48 MB for their digests and what the judge has found. sessionBytes is that of gateways' sessions: about 1 KB for each.
	saidBytes    = 688 << 20
	sessionBytes = 256 << 20
	leaseBytes   = 16 << 20
	// watchesMost is how many watches of all machines there may be: one of each one that looks, and the judge's. After a lost connection the
	// server has those before for a while, too.
	watchesMost = 4096
	// answerLimit is how long an answer of the registry is waited for if the caller sets no limit.
	answerLimit = 5 * time.Second
	// tableLimit is how long one attempt to find or make a table may take: servers of a cluster without a leader do not answer at all.
	tableLimit = 2 * time.Second
	// rewatchPause is how long a watch that could not begin waits before it tries again.
	rewatchPause = 500 * time.Millisecond
)

// rooms is how many bytes each bucket may hold; the server keeps that much for it.
var rooms = map[string]int64{saidBucket: saidBytes, leaseBucket: leaseBytes, sessions.Table: sessionBytes}

// RoomMB is how much room all tables need, in MB.
func RoomMB() (mb int64) {
	for _, bytes := range rooms {
		mb += bytes >> 20
	}
	return mb
}

// bucketOf is where a table is.
func bucketOf(table string) string {
	if rooms[table] > 0 {
		return table
	}
	return saidBucket
}

func tableOf(key string) string {
	table, _, _ := strings.Cut(key, ".")
	return table
}

// bucket is the one of a table. It is made if it is missing and we may. It is tried until ctx ends, or there is an answer.
func (e *Engine) bucket(ctx context.Context, table string) (kv jetstream.KeyValue, err error) {
	name := bucketOf(table)
	e.mu.Lock()
	kv = e.buckets[name]
	e.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	for {
		one, cancel := context.WithTimeout(ctx, tableLimit)
		if e.creates {
			err = e.makeBucket(one, name)
		}
		if err == nil {
			kv, err = e.js.KeyValue(one, bucketPrefix+name)
		}
		unanswered := one.Err() != nil
		cancel()
		if err == nil || !unanswered || ctx.Err() != nil {
			break
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.buckets[name] = kv
	return kv, nil
}

// copies is how many servers of a cluster have each table: one of them can be lost.
const copies = 3

// replicas is how many servers are to have each table.
func (e *Engine) replicas() int {
	if e.control.ConnectedClusterName() != "" {
		return copies
	}
	return 1
}

// configOf is how a bucket is made. It is as NATS makes one, but for two doors to others' records: a direct read hands on what is written, word for
// word, wherever the question wants it, and a rollup deletes all other records. A read by the server that leads is not old, besides, unless that was
// cut off a moment ago.
func (e *Engine) configOf(bucket string) jetstream.StreamConfig {
	name := bucketPrefix + bucket
	c := jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, MaxBytes: rooms[bucket], Discard: jetstream.DiscardNew, DenyDelete: true,
		Replicas: e.replicas(),
	}
	switch bucket {
	case saidBucket:
		c.MaxConsumers = watchesMost
	case sessions.Table:
		c.MaxAge = sessions.Kept
	}
	return c
}

// makeBucket makes a bucket, unless it is there as it is to be.
func (e *Engine) makeBucket(ctx context.Context, bucket string) error {
	want := e.configOf(bucket)
	stream, err := e.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && bucket == saidBucket {
		stream, err = e.replace(ctx, want)
	} else if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = e.js.CreateStream(ctx, want)
	}
	if err != nil {
		return err
	}
	if is := stream.CachedInfo().Config; is.AllowDirect || is.AllowRollup {
		is.AllowDirect, is.AllowRollup = false, false
		_, err = e.js.UpdateStream(ctx, is)
	}
	return err
}

// replace makes the bucket of what machines say, in place of those that versions before had for each table. What these know of open cases is
// kept: without it people would be told again.
func (e *Engine) replace(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	kept := e.openCases(ctx)
	gone := append([]string{"esc", "beat"}, OwnTables...)
	if !e.hub { // older machines may go on on these servers
		gone = []string{"state", "news"} // which take much room
	}
	for _, table := range gone {
		_ = e.js.DeleteStream(ctx, "KV_"+bucketPrefix+table) // it need not be there
	}
	stream, err := e.js.CreateStream(ctx, want)
	for i := 0; i < len(kept) && err == nil; i++ {
		_, _ = e.js.Publish(ctx, said+kept[i].Key(), kept[i].Value(), jetstream.WithExpectLastSequencePerSubject(0)) // nothing depends on it
	}
	return stream, err
}

// openCases are the records of open cases that versions before have, and the last words of the silent machines.
func (e *Engine) openCases(ctx context.Context) (kept []jetstream.KeyValueEntry) {
	about := map[string]bool{}
	for _, table := range []string{"esc", "digest"} {
		kv, err := e.js.KeyValue(ctx, bucketPrefix+table)
		if err != nil {
			return nil // there was no version before
		}
		keys, _ := kv.Keys(ctx) // of none there is an error
		for _, key := range keys {
			var r struct {
				State  string
				Agents []string
			}
			entry, err := kv.Get(ctx, key)
			names := engine.Names(table, key)
			switch {
			case err != nil:
				continue
			case table != "esc":
				if len(names) != 1 || !about[names[0]] {
					continue
				}
			case json.Unmarshal(entry.Value(), &r) != nil || r.State == "over" || len(names) != 2:
				continue
			case names[0] == "silent", names[0] == "machines":
				for _, machine := range append(r.Agents, names[1]) {
					about[machine] = true
				}
			case names[0] != "shared": // of what there is no more
				continue
			}
			kept = append(kept, entry)
		}
	}
	return kept
}

// MeetOlder returns the machines that write to the tables of versions before, and leaves them a digest of this machine. Neither side reads the
// other's tables.
func (e *Engine) MeetOlder(ctx context.Context, digest []byte) (hosts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tableLimit)
	defer cancel()
	kv, err := e.js.KeyValue(ctx, bucketPrefix+"digest")
	if err != nil {
		return nil, late(ctx, err) // there are none, or this machine may not ask
	}
	keys, _ := kv.Keys(ctx) // of none there is an error
	for _, key := range keys {
		if names := engine.Names("digest", key); len(names) == 1 && names[0] != e.host {
			hosts = append(hosts, names[0])
		}
	}
	_, err = kv.Put(ctx, engine.Key("digest", e.host), digest)
	return hosts, late(ctx, err)
}

// forget drops what is known of a table whose stream is gone.
func (e *Engine) forget(key string, err error) {
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.buckets, bucketOf(tableOf(key)))
	}
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, answerLimit)
}

// with calls do with the key's bucket.
func (e *Engine) with(ctx context.Context, key string, do func(context.Context, jetstream.KeyValue) (uint64, error)) (engine.Revision, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	kv, err := e.bucket(ctx, tableOf(key))
	var revision uint64
	if err == nil {
		revision, err = do(ctx, kv)
	}
	if err == nil {
		return engine.Revision(revision), nil
	}
	e.forget(key, err)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted): // a table that is missing is about to be made
		return 0, engine.ErrNotFound
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return 0, engine.ErrConflict
	}
	return 0, late(ctx, err)
}

// Get implements [engine.Registry].
func (e *Engine) Get(ctx context.Context, key string) (engine.Entry, error) {
	entry := engine.Entry{Key: key}
	_, err := e.with(ctx, key, func(ctx context.Context, kv jetstream.KeyValue) (uint64, error) {
		got, err := kv.Get(ctx, key)
		if err == nil && bucketOf(tableOf(key)) == saidBucket && !ofMachine(got.Value()) {
			err = jetstream.ErrKeyNotFound
		}
		if err != nil {
			return 0, err
		}
		entry.Value, entry.Revision = got.Value(), engine.Revision(got.Revision())
		return 0, nil
	})
	if err != nil {
		return engine.Entry{}, err
	}
	return entry, nil
}

// Put implements [engine.Registry].
func (e *Engine) Put(ctx context.Context, key string, value []byte) (engine.Revision, error) {
	if len(value) > engine.MaxValue {
		return 0, engine.ErrTooLarge
	}
	return e.with(ctx, key, func(ctx context.Context, kv jetstream.KeyValue) (uint64, error) { return kv.Put(ctx, key, value) })
}

// CAS implements [engine.Registry].
func (e *Engine) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	if len(value) > engine.MaxValue {
		return 0, engine.ErrTooLarge
	}
	return e.with(ctx, key, func(ctx context.Context, kv jetstream.KeyValue) (uint64, error) {
		if before == 0 {
			return kv.Create(ctx, key, value)
		}
		return kv.Update(ctx, key, value, uint64(before))
	})
}

// Delete implements [engine.Registry].
func (e *Engine) Delete(ctx context.Context, key string) error {
	_, err := e.with(ctx, key, func(ctx context.Context, kv jetstream.KeyValue) (uint64, error) { return 0, kv.Delete(ctx, key) })
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	return err
}

// Watch implements [engine.Registry].
func (e *Engine) Watch(ctx context.Context, prefixes ...string) (<-chan engine.Change, error) {
	w := &watch{e: e, out: make(chan engine.Change), known: map[string]bool{}}
	for _, prefix := range prefixes {
		w.filters = append(w.filters, prefix+".>")
	}
	source, err := w.open(ctx)
	if err != nil {
		return nil, late(ctx, err)
	}
	go w.run(ctx, source)
	return w.out, nil
}

// watch is one Watch. It begins anew with every new connection.
type watch struct {
	e       *Engine
	filters []string // of one bucket
	out     chan engine.Change
	known   map[string]bool // keys that were told and have not gone
	again   <-chan struct{} // closed by the connection after the one with which open has begun
	stop    func()          // ends what open has begun
}

// open begins to read. What is not answered within tableLimit is asked again, for answerLimit in all.
func (w *watch) open(ctx context.Context) (jetstream.KeyWatcher, error) {
	brief, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	w.e.mu.Lock()
	w.again = w.e.anew
	w.e.mu.Unlock()
	kv, err := w.e.bucket(brief, tableOf(w.filters[0]))
	if err != nil {
		return nil, err
	}
	for {
		watching, stop := context.WithCancel(ctx) // as long as the watcher lives
		late := time.AfterFunc(tableLimit, stop)
		source, err := kv.WatchFiltered(watching, slices.Clone(w.filters)) // it changes what it is given
		inTime := late.Stop()
		switch {
		case inTime && err == nil:
			w.stop = stop
			return source, nil
		case err == nil:
			end(source)
			err = context.DeadlineExceeded
		}
		stop()
		if inTime || brief.Err() != nil {
			w.e.forget(w.filters[0], err)
			return nil, err
		}
	}
}

func (w *watch) run(ctx context.Context, source jetstream.KeyWatcher) {
	defer close(w.out)
	for {
		if source != nil {
			w.read(ctx, source)
			end(source)
			w.stop()
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if source, err = w.open(ctx); err != nil {
			source = nil
			select {
			case <-ctx.Done():
			case <-w.again:
			case <-time.After(rewatchPause):
			}
		}
	}
}

// end stops a watcher. It may be about to say something, and would wait for ever for somebody to hear it.
func end(source jetstream.KeyWatcher) {
	go func() {
		for range source.Updates() {
		}
	}()
	_ = source.Stop() // the connection may be gone
}

// read hands on what a watcher says until there is a new connection, or until it has said nothing for answerLimit although not all was told:
// servers that elect a leader may lose what it waits for.
func (w *watch) read(ctx context.Context, source jetstream.KeyWatcher) {
	seen, came := map[string]bool{}, false // until all was told
	stuck := time.NewTimer(answerLimit)
	defer stuck.Stop()
	for {
		if seen != nil {
			stuck.Reset(answerLimit)
		} else {
			stuck.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-w.again:
			return
		case <-stuck.C:
			return
		case entry, more := <-source.Updates():
			if !more || entry != nil && !w.entry(ctx, entry, seen) {
				return
			}
			// All was told when nothing follows an entry, or there is none. A nil that comes later says that there were as many entries as
			// when the watch began: those may be newer words of some keys, while others were not told yet.
			if seen == nil || entry != nil && entry.Delta() > 0 || entry == nil && came {
				came = true
				continue
			}
			if !w.synced(ctx, seen) {
				return
			}
			seen = nil
		}
	}
}

// synced says that all was told, after what has gone.
func (w *watch) synced(ctx context.Context, seen map[string]bool) bool {
	for key := range w.known {
		if !seen[key] {
			delete(w.known, key)
			if !w.tell(ctx, engine.Change{Entry: engine.Entry{Key: key}, Gone: true}) {
				return false
			}
		}
	}
	return w.tell(ctx, engine.Change{Synced: true})
}

func (w *watch) entry(ctx context.Context, entry jetstream.KeyValueEntry, seen map[string]bool) bool {
	c := engine.Change{Entry: engine.Entry{Key: entry.Key(), Revision: engine.Revision(entry.Revision())}}
	if entry.Operation() != jetstream.KeyValuePut {
		if !w.known[c.Key] {
			return true // it was not there for the receiver either
		}
		delete(w.known, c.Key)
		c.Gone = true
		return w.tell(ctx, c)
	}
	if seen != nil {
		seen[c.Key] = true
	}
	if c.Value = entry.Value(); !ofMachine(c.Value) {
		return true // what the receiver knows stays
	}
	w.known[c.Key] = true
	return w.tell(ctx, c)
}

// ofMachine reports whether a machine can have said something. What a server says by itself, wherever a machine has it answer, is JSON that names no
// version; what machines say in JSON does.
func ofMachine(value []byte) bool {
	var named struct {
		V, Version json.RawMessage
	}
	return json.Unmarshal(value, &named) != nil || named.V != nil || named.Version != nil
}

func (w *watch) tell(ctx context.Context, c engine.Change) bool {
	select {
	case w.out <- c:
		return true
	case <-ctx.Done():
		return false
	}
}

// MakeTables makes what machines may not make by themselves.
func (e *Engine) MakeTables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for bucket := range rooms {
		if _, err := e.bucket(ctx, bucket); err != nil {
			return fmt.Errorf("make the table %s: %w", bucketPrefix+bucket, err)
		}
	}
	return nil
}

// Written are the keys of all that machines have said, or have deleted, and the last revision of them.
func (e *Engine) Written(ctx context.Context) (keys []string, last engine.Revision, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	stream, err := e.js.Stream(ctx, "KV_"+bucketPrefix+saidBucket)
	if err != nil {
		return nil, 0, late(ctx, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(said+">"))
	if err != nil {
		return nil, 0, late(ctx, err)
	}
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, said))
	}
	return keys, engine.Revision(info.State.LastSeq), nil
}

// DeleteAt removes a key that has the revision, otherwise it returns [engine.ErrConflict].
func (e *Engine) DeleteAt(ctx context.Context, key string, revision engine.Revision) error {
	_, err := e.with(ctx, key, func(ctx context.Context, kv jetstream.KeyValue) (uint64, error) {
		return 0, kv.Delete(ctx, key, jetstream.LastRevision(uint64(revision)))
	})
	return err
}
