package piv

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheOriginalsManifestIsRead(t *testing.T) {
	m, err := ParseManifest(fixture(t, "manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(h, m int) time.Time { return time.Date(2026, 3, 2, h, m, 0, 0, time.UTC) }
	want := &Manifest{
		LastUpdated: at(1, 41), Phase: 3,
		Failures: []Failure{
			{Command: "execute", Phase: 3, Category: "integration_auth", Details: "STRIPE_KEY is missing: 401 from the API"}, // the pending one of two
		},
		Notifications: []Notification{
			{Category: "integration_auth", Details: "Set STRIPE_KEY"}, // the other one was acknowledged
		},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
}

func TestAManifestMayHoldAnything(t *testing.T) {
	m, err := ParseManifest([]byte("failures: 7\nnotifications: [a, {phase: x, blocking: \"TRUE\"}]\nlast_updated: soon\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{Phase: NoPhase, Notifications: []Notification{{}}}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
	if _, err := ParseManifest([]byte("failures: [")); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(fixture(f, "manifest.yaml"))
	f.Add([]byte("failures: &f [*f, {phase: *f}]"))
	f.Add([]byte("notifications:\n- &n {blocking: true, acknowledged: *n}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if (err == nil) != (m != nil) || err != nil && !errors.Is(err, ErrBroken) {
			t.Fatalf("%v, %v", m, err)
		}
	})
}

func TestManifestPhases(t *testing.T) {
	const done = "{plan: complete, execution: complete, validation: pass}"
	for _, tc := range []struct {
		text     string
		phase    int
		complete bool
	}{
		{"phases: {1: " + done + ", 2: " + done + "}", NoPhase, true},
		{"phases: {2: {plan: complete, execution: in_progress}, 1: " + done + ", 3: {plan: not_started}}", 2, false},
		{"phases: {1: {plan: complete, execution: complete, validation: fail}}", 1, false},
		{"phases: {}", NoPhase, false},
		{"phases: [1]", NoPhase, false},
		{"last_updated: '2026-01-01'", NoPhase, false},
	} {
		m, err := ParseManifest([]byte(tc.text))
		if err != nil || m.Phase != tc.phase || m.Complete != tc.complete {
			t.Errorf("%s: phase %d, complete %v, %v", tc.text, m.Phase, m.Complete, err)
		}
	}
}
