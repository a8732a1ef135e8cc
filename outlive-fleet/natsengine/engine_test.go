package natsengine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

// Every promise of an engine, of several clients of one embedded server.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, members int) []engine.Engine {
		h, own, err := StartHub(HubOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		t.Cleanup(own.Close)
		all := []engine.Engine{own}
		for len(all) < members {
			e, err := Connect(Options{Host: ownUser, Password: h.own, Machine: "test", inProcess: h.server}, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			all = append(all, e)
		}
		return all[:members]
	})
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listening is a hub that others connect to, who have the password "secret".
func listening(t *testing.T, dir, address string, pair tls.Certificate) (*Hub, *Engine) {
	t.Helper()
	h, own, err := StartHub(HubOptions{Dir: dir, Listen: address, Certificate: pair, Admit: func(_, _, password, _ string) error {
		if password != "secret" {
			return errors.New("no")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.MakeTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, own
}

func options(h *Hub, pair tls.Certificate, host, password string) Options {
	pin := sha256.Sum256(pair.Certificate[0])
	return Options{URL: "nats://" + h.Address(), Host: host, Machine: host, Password: password, Pin: pin[:]}
}

// Whoever comes without a token leaves nothing behind in a hub, nor do connections that have ended.
func TestConnectionsAreForgotten(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	known := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.conns)
	}
	for _, host := range []string{"a", "b", strings.Repeat("long", 100)} {
		if _, err := Connect(options(h, pair, host, "guess"), false); !errors.Is(err, ErrRefused) {
			t.Errorf("%.10s with a wrong token: %v", host, err)
		}
	}
	if n := known(); n != 0 {
		t.Errorf("%d refused connections are known", n)
	}
	for range 3 {
		a, err := Connect(options(h, pair, "a", "secret"), false)
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		await.Until(t, "the hub has no connections but its own two", func() bool { return h.server.NumClients() == 2 })
	}
	if h.Drop(func(string, string) bool { return true }) {
		t.Error("one is dropped that is to stay")
	}
	if n := known(); n != 0 {
		t.Errorf("%d connections that have ended are known", n)
	}
}

// A machine may write what it says of itself and ask everybody; it may not write for others, be asked as another one, or change the
// tables. Without the token, or where another certificate is shown, nobody comes in.
func TestRights(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	if _, err := Connect(options(h, pair, "a", "guess"), false); !errors.Is(err, ErrRefused) {
		t.Errorf("with a wrong token: %v", err)
	}
	if _, err := Connect(options(h, certificate(t), "a", "secret"), false); !errors.Is(err, ErrStranger) {
		t.Errorf("with another certificate: %v", err)
	}
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	within := func(limit time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		t.Cleanup(cancel)
		return ctx
	}
	allowed := func() context.Context { return within(2 * time.Minute) }
	refused := func() context.Context { return within(2 * time.Second) } // what is refused may have no answer
	if _, err := a.Put(allowed(), "digest.a", []byte("x")); err != nil {
		t.Errorf("a writes of itself: %v", err)
	}
	if e, err := a.Get(allowed(), "digest.a"); err != nil || string(e.Value) != "x" {
		t.Errorf("a reads of itself: %q, %v", e.Value, err)
	}
	for _, key := range []string{"digest.b", "beat.a", "lease.other", "lease.gateway", "other.a"} {
		if _, err := a.Put(refused(), key, []byte("x")); err == nil {
			t.Errorf("a may write %s", key)
		}
	}
	for _, key := range []string{"lease.judge", "esc.silent.b", "state.a", "lease.gateway.g=3a10=2e0=2e0=2e1=3a7420", "session.g.one"} { // any machine may be the judge, or have a gateway's sessions
		if _, err := a.CAS(allowed(), key, []byte("x"), 0); err != nil {
			t.Errorf("a writes %s: %v", key, err)
		}
	}
	for _, address := range []string{"run.b", EndedAddress} {
		if _, err := a.Serve(address, func(context.Context, string, []byte) []byte { return nil }); err == nil {
			if _, err := own.Request(allowed(), address, nil); !errors.Is(err, engine.ErrNoOwner) {
				t.Errorf("a is asked as %s: %v", address, err)
			}
		}
	}
	stop, err := own.Serve("run.b", func(_ context.Context, asker string, q []byte) []byte {
		return append([]byte("to b from "+asker+": "), q...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if answer, err := a.Request(allowed(), "run.b", []byte("hello")); err != nil || string(answer) != "to b from a: hello" {
		t.Errorf("a asks b: %q, %v", answer, err)
	}
	// It cannot ask as another machine: whoever is asked never hears of that.
	if m, err := a.call.RequestWithContext(refused(), "run.b.c", []byte("hello")); err == nil {
		t.Errorf("a asks as c: %q", m.Data)
	}
	if e, err := a.Get(allowed(), "session.g.one"); err != nil || string(e.Value) != "x" {
		t.Errorf("a reads a session: %q, %v", e.Value, err)
	}
	if err := a.Delete(allowed(), "session.g.one"); err != nil {
		t.Errorf("a deletes a session: %v", err)
	}
	if err := a.js.DeleteStream(refused(), "KV_"+bucketPrefix+saidBucket); err == nil {
		t.Error("a may delete a table")
	}
	// Nor does it get further by a message to itself that wants its answer where a may not write.
	for _, subject := range []string{said + "digest.b", "$JS.API.STREAM.DELETE.KV_" + bucketPrefix + saidBucket} {
		asked, err := a.call.SubscribeSync("run.a.a")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.call.PublishRequest("run.a.a", subject, nil), a.call.FlushWithContext(allowed())); err != nil {
			t.Fatal(err)
		}
		m, err := asked.NextMsg(time.Second) // a server that delivers it has done so by now
		if errors.Is(err, nats.ErrTimeout) {
			continue // since 2.15.3 a server refuses some of them itself
		} else if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Respond([]byte("forged")), a.call.FlushWithContext(allowed()), asked.Unsubscribe()); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := own.Get(allowed(), "digest.b"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a has written of b: %q, %v", e.Value, err)
	}
	if e, err := own.Get(allowed(), "digest.a"); err != nil || string(e.Value) != "x" {
		t.Errorf("what a has said of itself: %q, %v", e.Value, err)
	}
}

// A machine cannot have a server ask another one under a name that is not its own, nor have an answer written where it may not write: a
// question is one of its asker only with an inbox of that for the answer.
func TestForgedQuestions(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Put(t.Context(), "digest.a", []byte("forged")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	stop, err := own.Serve("run.b", func(_ context.Context, asker string, question []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, asker+": "+string(question))
		return []byte("done")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	came, err := own.call.SubscribeSync("run.b.c")
	if err != nil || own.call.Flush() != nil {
		t.Fatal(err)
	}
	if answer := answerTo(t, a, delivering(saidBucket, "c", "digest.a", "run.b.c")); strings.Contains(answer, `"error"`) { // as c
		t.Fatal(answer)
	}
	if err := errors.Join(a.call.PublishRequest("run.b.a", said+"digest.b", nil), a.call.Flush()); err != nil { // the answer is written as if b had
		t.Fatal(err)
	}
	if m, err := came.NextMsg(2 * time.Minute); err != nil || string(m.Data) != "forged" {
		t.Errorf("the server delivers what it reads as if c had asked: %v, %v", m, err)
	}
	if answer, err := a.Request(t.Context(), "run.b", []byte("mine")); err != nil || string(answer) != "done" {
		t.Errorf("a asks by itself: %q, %v", answer, err)
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "a: mine" {
		t.Errorf("b is asked %q", asked)
	}
	if e, err := own.Get(t.Context(), "digest.b"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a has had written of b: %q, %v", e.Value, err)
	}
}

// A machine that was asked something cannot tell where the answer to another question goes: it would answer in another machine's place.
func TestAnswersGoWhereNobodyGuesses(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	asked, err := own.call.SubscribeSync("run.b.a")
	if err != nil || own.call.Flush() != nil {
		t.Fatal(err)
	}
	var places []string
	for range 2 {
		answered := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			_, err := a.Request(ctx, "run.b", nil)
			answered <- err
		}()
		m, err := asked.NextMsg(2 * time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Respond(nil), <-answered); err != nil {
			t.Fatal(err)
		}
		places = append(places, m.Reply)
	}
	same := 0
	for same < min(len(places[0]), len(places[1])) && places[0][same] == places[1][same] {
		same++
	}
	if left := len(places[1]) - same; left < 20 { // of five bits each
		t.Errorf("who knows %s has %d characters of %s to guess", places[0], left, places[1])
	}
}

// delivering wants a consumer that delivers the records of a key somewhere.
func delivering(bucket, name, key, to string) *nats.Msg {
	stream, filter := "KV_"+bucketPrefix+bucket, "$KV."+bucketPrefix+bucket+"."+key
	return &nats.Msg{Subject: "$JS.API.CONSUMER.CREATE." + stream + "." + name + "." + filter, Data: fmt.Appendf(nil,
		`{"stream_name":%q,"config":{"name":%q,"filter_subject":%q,"deliver_subject":%q,"deliver_policy":"all","ack_policy":"none"}}`, stream, name, filter, to)}
}

func answerTo(t *testing.T, a *Engine, m *nats.Msg) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	answer, err := a.call.RequestMsgWithContext(ctx, m)
	if err != nil {
		t.Fatalf("%s: %v", m.Subject, err)
	}
	return string(answer.Data)
}

// A machine has no words of its own written where another one writes, by no request. What a server says there by itself counts for nothing.
func TestForgedRecords(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const honest, forged = `{"v":1,"inc":"b"}`, `{"v":1,"inc":"forged"}`
	put := func(key, value string) {
		t.Helper()
		if _, err := own.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{"digest.b": honest, "digest.c": honest, "digest.a": forged, "esc.x.y": forged, "lease.judge": forged, "session.g.one": forged} {
		put(key, value)
	}
	watching, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	changes, err := own.Watch(watching, "digest")
	if err != nil {
		t.Fatal(err)
	}
	came, err := own.call.SubscribeSync(said + "digest.b")
	if err != nil || own.call.Flush() != nil {
		t.Fatal(err)
	}
	asks := func(m *nats.Msg) {
		t.Helper()
		m.Reply = said + "digest.b"
		if err := errors.Join(a.call.PublishMsg(m), a.call.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	const stream = "KV_" + bucketPrefix + saidBucket
	// What would hand on what is written, word for word, a machine may not ask for.
	for _, m := range []*nats.Msg{
		{Subject: "$JS.API.DIRECT.GET." + stream + "." + said + "digest.a"}, {Subject: "$JS.API.DIRECT.GET." + stream, Data: []byte(`{"seq":1}`)},
		{Subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + ".moves", Data: []byte("1")}, {Subject: "$JS.API.STREAM.SNAPSHOT." + stream, Data: []byte(`{"deliver_subject":"run.b.c"}`)},
		delivering(leaseBucket, "new", "lease.judge", said+"digest.b"), delivering(sessions.Table, "new", "session.g.one", said+"digest.b"),
	} {
		asks(m)
		if err := a.call.LastError(); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), m.Subject) {
			t.Errorf("a machine may ask for %s: %v", m.Subject, err)
		}
	}
	if _, err := a.call.SubscribeSync(inboxOf("a") + ".x"); err != nil {
		t.Fatal(err)
	}
	if answer := answerTo(t, a, delivering(saidBucket, "moves", "digest.a", inboxOf("a")+".x")); strings.Contains(answer, `"error"`) {
		t.Fatal(answer)
	}
	for _, name := range []string{"moves", "new"} {
		for _, key := range []string{"digest.a", "esc.x.y"} {
			if answer := answerTo(t, a, delivering(saidBucket, name, key, said+"digest.b")); !strings.Contains(answer, `"error"`) {
				t.Errorf("what is read of %s is delivered into the table: %s", key, answer)
			}
		}
	}
	// What a server answers in its own words.
	for _, m := range []*nats.Msg{
		{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: []byte(`{"last_by_subj":"` + said + `digest.a"}`)}, {Subject: "$JS.API.STREAM.MSG.GET." + stream},
		{Subject: "$JS.API.STREAM.INFO." + stream}, {Subject: "$JS.API.CONSUMER.INFO." + stream + ".none"}, {Subject: "$JS.API.INFO"},
		{Subject: said + "digest.a", Data: []byte(forged)}, // it is told that this was written
	} {
		asks(m)
		if answer, err := came.NextMsg(2 * time.Minute); err != nil {
			t.Errorf("%s: %v", m.Subject, err)
		} else if ofMachine(answer.Data) {
			t.Errorf("%s: a machine can have said %s", m.Subject, answer.Data)
		}
	}
	if e, err := own.Get(t.Context(), "digest.b"); !errors.Is(err, engine.ErrNotFound) && string(e.Value) != honest {
		t.Errorf("of b is read %q, %v", e.Value, err)
	}
	// A write that deletes all others.
	all := &nats.Msg{Subject: said + "digest.a", Header: nats.Header{"Nats-Rollup": {"all"}}, Data: []byte(forged)}
	if answer := answerTo(t, a, all); !strings.Contains(answer, `"error"`) {
		t.Errorf("a machine deletes what others have said: %s", answer)
	}
	put("digest.z", "the end")
	var last string
	for c := range changes {
		if last = c.Key; last == "digest.z" {
			break
		} else if last == "digest.b" && (c.Gone || string(c.Value) != honest) {
			t.Errorf("of b is told %+v", c)
		}
	}
	if last != "digest.z" {
		t.Error("what is written later is not told")
	}
	put("digest.b", honest)
	for _, key := range []string{"digest.b", "digest.c"} {
		if e, err := own.Get(t.Context(), key); err != nil || string(e.Value) != honest {
			t.Errorf("of %s is read %q, %v", key, e.Value, err)
		}
	}
}

// Buckets of earlier versions are made as they are to be, or go where another one has taken their place.
func TestEarlierBuckets(t *testing.T) {
	h, own, err := StartHub(HubOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer own.Close()
	for _, name := range []string{"digest", sessions.Table} {
		if _, err := own.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucketPrefix + name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := own.MakeTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := own.js.Stream(t.Context(), "KV_"+bucketPrefix+"digest"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the table of digests has a bucket of its own: %v", err)
	}
	if s, err := own.js.Stream(t.Context(), "KV_"+bucketPrefix+sessions.Table); err != nil || s.CachedInfo().Config.AllowDirect || s.CachedInfo().Config.AllowRollup {
		t.Errorf("sessions are read from any server, or can all be deleted by one write: %v", err)
	}
}

// Of what versions before have kept the cases that are open go on, and what the silent machines of these have said last. On servers that older machines
// may use they are left what these need, and each side hears of the other.
func TestEarlierCases(t *testing.T) {
	const sent, over = `{"version":1,"state":"sent","holder":"b/1","message":"b","agents":["m","n"]}`, `{"version":1,"state":"over"}`
	was := map[string]string{
		"esc.silent.x": sent, "esc.silent.y": over, "esc.machines.m": sent, "esc.shared.account:claude:limit": sent, "esc.hub.z": sent,
		"digest.x": `{"v":1}`, "digest.y": `{"v":1}`, "beat.x": `{"version":1,"host":"x"}`, "beat.n": `{"version":1,"host":"n"}`, "beat.y": `{"version":1}`, "state.x": "state",
	}
	kept := []string{"digest.x", "esc.machines.m", "esc.shared.account=3aclaude=3alimit", "esc.silent.x"}
	for _, hub := range []bool{true, false} {
		h, own, err := StartHub(HubOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		defer own.Close()
		own.hub = hub
		for key, value := range was {
			kv, err := own.js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucketPrefix + tableOf(key)})
			if err == nil {
				_, err = kv.Put(t.Context(), engine.Key(tableOf(key), strings.Split(key, ".")[1:]...), []byte(value))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := own.MakeTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys, _, err := own.Written(t.Context())
		if slices.Sort(keys); err != nil || !slices.Equal(keys, kept) {
			t.Errorf("hub %v: kept %q, %v", hub, keys, err)
		}
		if e, err := own.Get(t.Context(), "esc.silent.x"); err != nil || string(e.Value) != sent {
			t.Errorf("hub %v: the record is %q, %v", hub, e.Value, err)
		}
		older, err := own.MeetOlder(t.Context(), []byte(`{"v":1,"version":"here"}`))
		if slices.Sort(older); slices.Equal(older, []string{"x", "y"}) == hub || (err == nil) == hub {
			t.Errorf("hub %v: meets %q, %v", hub, older, err)
		}
		if _, err := own.js.Stream(t.Context(), "KV_"+bucketPrefix+"state"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("hub %v: the earlier table of states takes its room: %v", hub, err)
		}
		if hub {
			continue
		}
		kv, err := own.js.KeyValue(t.Context(), bucketPrefix+"digest")
		if err != nil {
			t.Fatal(err)
		}
		if e, err := kv.Get(t.Context(), engine.Key("digest", ownUser)); err != nil || !strings.Contains(string(e.Value()), "here") {
			t.Errorf("no word is left for older machines: %v", err)
		}
	}
}

// A hub that ends and comes back: what was watched goes on, and what had gone meanwhile is told. A machine that was dropped and is
// not let in any more is told so.
func TestHubReturns(t *testing.T) {
	pair, dir := certificate(t), t.TempDir()
	h, own := listening(t, dir, "127.0.0.1:0", pair)
	o := options(h, pair, "a", "secret")
	a, err := Connect(o, false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for n := range 3 {
		if _, err := own.Put(t.Context(), fmt.Sprintf("state.h%d", n), []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes, err := a.Watch(ctx, "state")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	until := func(what string, done func(engine.Change) bool) {
		t.Helper()
		limit := time.After(2 * time.Minute)
		for {
			select {
			case c := <-changes:
				if c.Gone {
					delete(known, c.Key)
				} else if !c.Synced {
					known[c.Key] = string(c.Value)
				}
				if done(c) {
					return
				}
			case <-limit:
				t.Fatalf("%s: not told; known is %v", what, known)
			}
		}
	}
	until("everything at first", func(c engine.Change) bool { return c.Synced })
	if len(known) != 3 {
		t.Fatalf("known is %v", known)
	}
	address := h.Address()
	own.Close()
	h.Close()
	h, own = listening(t, dir, address, pair)
	defer h.Close()
	defer own.Close()
	if err := own.Delete(t.Context(), "state.h1"); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Put(t.Context(), "state.h2", []byte("2")); err != nil {
		t.Fatal(err)
	}
	until("what has changed", func(engine.Change) bool { _, there := known["state.h1"]; return !there && known["state.h2"] == "2" })
}

// source is a watcher that says what it is given.
type source struct{ updates chan jetstream.KeyValueEntry }

func (s source) Updates() <-chan jetstream.KeyValueEntry { return s.updates }
func (s source) Stop() error                             { return nil }

// told is an entry that a watcher tells, with how many follow it.
type told struct {
	jetstream.KeyValueEntry
	key   string
	delta uint64
}

func (e told) Key() string                     { return e.key }
func (e told) Value() []byte                   { return []byte("x") }
func (e told) Revision() uint64                { return 1 }
func (e told) Delta() uint64                   { return e.delta }
func (e told) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }

// While a thousand machines are told many of them write anew, so that as many entries as there were are told before all machines are. Those that
// are still to come have not gone, and all that was there counts as told only then.
func TestWatchTellsAllBeforeItIsSynced(t *testing.T) {
	for name, c := range map[string]struct {
		tells []jetstream.KeyValueEntry
		want  string
	}{
		"nothing is there":        {[]jetstream.KeyValueEntry{nil}, "gone synced"},
		"all at once":             {[]jetstream.KeyValueEntry{told{key: "a", delta: 1}, told{key: "b"}, nil}, "a b synced"},
		"one is written anew":     {[]jetstream.KeyValueEntry{told{key: "a", delta: 1}, told{key: "a", delta: 1}, nil, told{key: "b"}, told{key: "a"}}, "a a b synced a"},
		"until nothing is to say": {[]jetstream.KeyValueEntry{told{key: "a", delta: 2}, told{key: "b", delta: 2}, nil, told{key: "a", delta: 1}, told{key: "b"}}, "a b a b synced"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source{make(chan jetstream.KeyValueEntry, len(c.tells))}
			for _, entry := range c.tells {
				s.updates <- entry
			}
			close(s.updates)
			w := &watch{out: make(chan engine.Change, 9), known: map[string]bool{"b": true}}
			w.read(t.Context(), s)
			close(w.out)
			var got []string
			for change := range w.out {
				switch {
				case change.Synced:
					got = append(got, "synced")
				case change.Gone:
					got = append(got, "gone")
				default:
					got = append(got, change.Key)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("told %q, want %q", text, c.want)
			}
		})
	}
}

// A machine whose outlive does not understand the hub's is refused, and the hub says why. With a hub that does not understand it, it says so itself.
func TestAnotherVersion(t *testing.T) {
	pair := certificate(t)
	told := make(chan string, 9)
	h, own, err := StartHub(HubOptions{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", Certificate: pair, Admit: func(string, string, string, string) error { return nil },
		Refused: func(host, _ string, why error) { told <- host + ": " + why.Error() },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer own.Close()
	pin := sha256.Sum256(pair.Certificate[0])
	_, err = nats.Connect("nats://"+h.Address(), nats.UserInfo("a", "secret"), nats.Secure(pinned(pin[:])), nats.TLSHandshakeFirst())
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a member of a version before is let in: %v", err)
	}
	if got := <-told; !strings.HasPrefix(got, "a: outlive there is another version") {
		t.Errorf("the hub says %q", got)
	}
	before, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Users: []*server.User{{
		Username: "a", Password: "secret", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_a.>", "run.a", "ping.a"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	go before.Start()
	defer before.Shutdown()
	if !before.ReadyForConnections(2 * time.Minute) {
		t.Fatal("the hub of a version before does not start")
	}
	a, err := Connect(Options{URL: before.ClientURL(), Host: "a", Machine: "a", Password: "secret"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Serve("run.a", func(context.Context, string, []byte) []byte { return nil }); !errors.Is(err, errNotAsked) {
		t.Errorf("with a hub of a version before: %v", err)
	}
}

// While the hub cannot be reached nothing is known of who is there: no question says that nobody is.
func TestRequestWithoutHub(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := a.Request(ctx, "run.b", nil)
		return err
	}
	if err := ask(2 * time.Minute); !errors.Is(err, engine.ErrNoOwner) {
		t.Errorf("nobody is there: %v", err)
	}
	h.Close()
	for range 3 {
		if err := ask(time.Second); !errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrNoOwner) {
			t.Errorf("without a hub: %v", err)
		}
	}
}

// A hub tells a connection that was closed from one that fell silent.
func TestHowEnded(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	is := func(want judge.Standing) {
		t.Helper()
		await.Value(t, fmt.Sprintf("its end is %q", want), func() (judge.Standing, bool) { how := h.howEnded("a"); return how, how == want })
	}
	if how := h.howEnded("hub"); how != judge.Lost { // a machine may be called so
		t.Errorf("a machine that never came is said to be %q", how)
	}
	is(judge.Lost)
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	is(judge.Works)
	a.Close()
	is(judge.Gone)
	// One that was killed with bytes unread: its system resets the connection.
	reset := newTunnel(t, h.Address())
	o := options(h, pair, "a", "secret")
	o.URL = "nats://" + reset.address
	if a, err = Connect(o, false); err != nil {
		t.Fatal(err)
	}
	is(judge.Works)
	reset.reset()
	a.Close()
	is(judge.Gone)
	// One whose bytes do not come any more, and whose system does not say that it has ended.
	through := newTunnel(t, h.Address())
	o.URL = "nats://" + through.address
	if a, err = Connect(o, false); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	is(judge.Works)
	through.mute()
	is(judge.CutOff)
}

// tunnel carries connections, until nothing passes any more.
type tunnel struct {
	address  string
	listener net.Listener
	muted    chan struct{}

	mu    sync.Mutex
	there []*net.TCPConn
}

func newTunnel(t *testing.T, to string) *tunnel {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	one := &tunnel{address: listener.Addr().String(), listener: listener, muted: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			t.Cleanup(func() { _, _ = from.Close(), there.Close() })
			one.mu.Lock()
			one.there = append(one.there, there.(*net.TCPConn))
			one.mu.Unlock()
			go one.carry(there, from)
			go one.carry(from, there)
		}
	}()
	return one
}

func (o *tunnel) carry(to, from net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-o.muted:
			return
		default:
		}
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

func (o *tunnel) mute() { close(o.muted) }

// reset resets the connections, and takes no others.
func (o *tunnel) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.listener.Close()
	for _, one := range o.there {
		_ = one.SetLinger(0)
		_ = one.Close()
	}
}
