package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// A machine that leaves while its member is stopped keeps no cases of the fleet: its monitor closes those that it has.
func TestLeaveWithoutMember(t *testing.T) {
	dir := t.TempDir()
	s := &settings{state: dir, socket: filepath.Join(dir, "fleet.sock")}
	if err := writeFile(s.memberFile(), membership{Version: fileVersion, Host: "one", Address: "hub:4242"}); err != nil {
		t.Fatal(err)
	}
	cases := filepath.Join(dir, "cases.json")
	if err := os.WriteFile(cases, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	leave := newLeave(s)
	leave.SetArgs([]string{})
	if err := leave.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cases); !os.IsNotExist(err) {
		t.Errorf("the cases of the fleet stay: %v", err)
	}
}

// A token is read as it was made; what is cut or changed where its form shows it is refused.
func TestTokenText(t *testing.T) {
	made := token{Host: "build-1", Secret: rand.Text(), Pin: bytes.Repeat([]byte{7}, 32)}
	got, err := parseToken(" " + made.String() + "\n")
	if err != nil || got.Host != made.Host || got.Secret != made.Secret || !bytes.Equal(got.Pin, made.Pin) {
		t.Fatalf("%v, %v", got, err)
	}
	text := made.String()
	for n := range len(text) {
		if _, err := parseToken(text[:n]); err == nil {
			t.Errorf("%q is taken", text[:n])
		}
	}
}

// The hub before kept the name of a token that was revoked. It is none here: the machine gets a new one as any other.
func TestTokensOfTheHubBefore(t *testing.T) {
	s := &settings{state: t.TempDir()}
	if err := os.MkdirAll(s.hubDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	const before = `{"version": 1, "tokens": [
		{"host": "build1", "hash": "5e88", "made": "2026-11-20T10:00:00Z", "machine": "m1", "used": "2026-11-20T10:01:00Z", "from": "10.0.0.2:1", "serial": 2},
		{"host": "laptop", "hash": "", "made": "0001-01-01T00:00:00Z", "revoked": "2026-11-21T10:00:00Z", "serial": 3}]}`
	if err := os.WriteFile(s.tokensPath(), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := s.tokens()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"build1": "5e88"}; !maps.Equal(f.good(), want) || len(f.Tokens) != 1 || f.Tokens[0].Machine != "m1" {
		t.Errorf("%+v", f)
	}
	if err := s.changeTokens(func(f *tokenFile) error { return f.make("laptop", "new") }); err != nil {
		t.Errorf("a machine whose token was revoked gets no new one: %v", err)
	}
}

// Who starts or joins three hubs that were one is told what there is in their place.
func TestHubsOfThreeAreGone(t *testing.T) {
	s := &settings{state: t.TempDir()}
	for verb, args := range map[string][]string{
		"hub":  {"--cluster", "hub1,hub2,hub3", "--self", "hub1"},
		"join": {"hub1,hub2,hub3", "--token", token{Host: "a", Secret: "s", Pin: bytes.Repeat([]byte{7}, 32)}.String()},
	} {
		cmd := map[string]func(*settings) *cobra.Command{"hub": newHub, "join": newJoin}[verb](s)
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); !errors.As(err, new(usage)) || !strings.Contains(err.Error(), noCluster) {
			t.Errorf("fleet %s %q: %v", verb, args, err)
		}
	}
}

// A hub's certificate can be elsewhere, as a link, which is how Kubernetes shows a secret.
func TestIdentityElsewhere(t *testing.T) {
	one := &settings{state: t.TempDir()}
	made, _, err := one.identity()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "hub.json")
	if err := os.Symlink(one.identityPath(), link); err != nil {
		t.Skipf("this system makes no links: %v", err)
	}
	t.Setenv("OUTLIVE_HUB_IDENTITY", link)
	other := &settings{state: t.TempDir()}
	if got, _, err := other.identity(); err != nil || got != made {
		t.Errorf("elsewhere: %v, the same: %t", err, got == made)
	}
}

// A hub that starts while its first tokens are made has one identity: each token names the certificate that stays.
func TestIdentityIsMadeOnce(t *testing.T) {
	const n = 16
	dir := t.TempDir()
	var ids [n]identity
	var errs [n]error
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-begin
			ids[i], _, errs[i] = (&settings{state: dir}).identity()
		})
	}
	close(begin)
	all.Wait()
	stays, _, err := (&settings{state: dir}).identity()
	if err := errors.Join(append(errs[:], err)...); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if id != stays {
			t.Errorf("caller %d has another identity than the one that stays", i)
		}
	}
}

// A command's parts come in order, each as often as it is asked for, and its end after all of them.
func TestJobParts(t *testing.T) {
	j := &job{cancel: func() {}, asked: time.Now(), changed: make(chan struct{})}
	j.add(&j.out, bytes.Repeat([]byte("x"), chunk+1))
	j.add(&j.err, []byte("no"))
	j.end(3)
	for range 2 {
		if p := j.next(t.Context(), 1); len(p.Out) != chunk || string(p.Err) != "no" || p.Exit != nil {
			t.Fatalf("part 1: %d bytes, %q, %v", len(p.Out), p.Err, p.Exit)
		}
	}
	if p := j.next(t.Context(), 2); len(p.Out) != 1 || p.Exit != nil && len(j.out) > 0 {
		t.Fatalf("part 2: %d bytes, %v", len(p.Out), p.Exit)
	} else if p.Exit == nil {
		t.Fatal("the last part has no exit status")
	} else if *p.Exit != 3 {
		t.Fatalf("exit status %d", *p.Exit)
	}
	if p := j.next(t.Context(), 1); p.Failed == "" {
		t.Error("a part that is gone is told")
	}
}

// The state that is read is the one that was written, and what only counts is no change.
func TestStates(t *testing.T) {
	s := overview.Snapshot{Version: "v1", At: time.Now().UTC().Truncate(time.Second), Instances: []overview.Instance{{Instance: control.Instance{Name: "one", PID: 7}}}}
	text, err := packed(stated{Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpacked(text)
	if err != nil || !got.At.Equal(s.At) || len(got.Instances) != 1 || got.Instances[0].PID != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	counted, crashed := s, s
	counted.Instances = []overview.Instance{{Instance: control.Instance{Name: "one", PID: 7}}}
	counted.Instances[0].Status.InFlight = 3
	crashed.Instances = []overview.Instance{{Instance: control.Instance{Name: "one", PID: 7}}}
	crashed.Instances[0].Status.State = "backoff"
	if signOf(counted) != signOf(s) {
		t.Error("a count is told at once")
	}
	if signOf(crashed) == signOf(s) {
		t.Error("a crash is not told at once")
	}
}

// A machine is silent from three beats without a word on, and not before; its next word ends that.
func TestSilent(t *testing.T) {
	old := []byte(`{"v":1,"inc":"a","beat":1,"at":"2001-01-01T00:00:00Z"}`)
	never := func(time.Time) bool { return false }
	h := newKnownHost()
	h.take(digestTable, old, false, never)
	if !h.beaten.IsZero() {
		t.Error("an old beat counts as one that was just heard")
	}
	h.take(digestTable, old, false, never) // the table was read again
	if !h.beaten.IsZero() {
		t.Error("the same beat counts as a new one")
	}
	h.silent = true
	h.take(digestTable, []byte(`{"v":1,"inc":"a","beat":2,"at":"2001-01-01T00:00:05Z"}`), true, never) // its clock is wrong
	if h.beaten.IsZero() || h.silent {
		t.Error("a new beat does not count")
	}
}

// A case whose machine is there again says so: the table above it shows the machine as connected.
func TestCaseLine(t *testing.T) {
	c := fleetsocket.Case{Kind: string(judge.Silent), Subject: "build1", How: "gone", By: "laptop", State: fleetsocket.Told}
	for state, want := range map[string]string{fleetsocket.Shown: "laptop shows it (outlive ack --fleet), and nobody could be told", fleetsocket.Found: "nobody was told of it yet"} {
		one := c
		one.State = state
		if got := caseLine(one, false); !strings.Contains(got, want) || strings.Contains(got, "people were told") {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
	shared := fleetsocket.Case{Kind: string(judge.Shared), Subject: "account:claude:limit", Agents: []string{"b/shop"}, State: fleetsocket.Told}
	if got, want := caseLine(shared, false), "stops b/shop; people were told by a machine that has it"; !strings.Contains(got, want) {
		t.Errorf("of a machine that told by itself: %q, want %q", got, want)
	}
	for heard, want := range map[bool]string{false: "The machine build1 is gone; people were told by laptop", true: "The machine build1 is heard again, which closes this"} {
		if got := caseLine(c, heard); !strings.Contains(got, want) {
			t.Errorf("heard again: %t: %q, want %q", heard, got, want)
		}
	}
}

// That nobody can be told is said where it is known, and not while machines may be missing.
func TestUntold(t *testing.T) {
	with := func(tells bool, state string) []fleetsocket.Host {
		return []fleetsocket.Host{{Name: "a", Tells: tells, State: state}}
	}
	for _, tt := range []struct {
		st   fleetsocket.Status
		want string // a part of it; "": nothing
	}{
		{fleetsocket.Status{Hosts: with(true, fleetsocket.Connected)}, ""},
		{fleetsocket.Status{Hosts: with(false, fleetsocket.Connected)}, "no machine of the fleet runs outlive monitor with a channel"},
		{fleetsocket.Status{Hosts: with(true, fleetsocket.Silent)}, "no machine whose outlive monitor has a channel is connected"},
		{fleetsocket.Status{Hosts: with(false, fleetsocket.Connected), Partial: true}, ""},
		{fleetsocket.Status{Hosts: with(true, fleetsocket.Unknown), Why: "no answer"}, ""},
		{fleetsocket.Status{Hosts: with(false, fleetsocket.Connected), Version: "0.1.0"}, ""},
	} {
		if got := untold(tt.st, ""); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", tt.st, got, tt.want)
		}
	}
}
