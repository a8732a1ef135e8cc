package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// memberSays has a member of a fleet run on this machine that says how the fleet stands, and whose machines have nothing to tell.
func memberSays(t *testing.T, s fleetsocket.Status) {
	t.Helper()
	t.Setenv("OUTLIVE_STATE_HOME", t.TempDir())
	listener, err := control.ListenAt(fleetSocket())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s) })
	mux.HandleFunc("POST /v1/run", func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range []fleetsocket.Frame{{Out: []byte("outlive " + version() + "\n[]")}, {Exit: new(int)}} {
			_ = json.NewEncoder(w).Encode(f)
		}
	})
	served, server := make(chan struct{}), http.Server{Handler: mux}
	go func() { defer close(served); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
}

// Machines that were not there at first are followed, too.
func TestMachinesThatJoin(t *testing.T) {
	memberSays(t, fleetsocket.Status{Host: "a", Connected: true, Hosts: []fleetsocket.Host{{Name: "a"}, {Name: "b"}}})
	var o collect.Options
	(&hostFlags{}).followFleet(&o, &hosts.Set{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var joined []string
	o.Joining(ctx, func(r collect.Remote) {
		if joined = append(joined, r.Name()); len(joined) == 2 {
			cancel()
		}
	})
	if !slices.Equal(joined, []string{"a", "b"}) {
		t.Errorf("%q are followed", joined)
	}
}

// A verb that was interrupted waits for no member.
func TestInterruptedBeforeTheMemberHasAnswered(t *testing.T) {
	memberSays(t, fleetsocket.Status{Host: "a", Connected: true, Hosts: []fleetsocket.Host{{Name: "a"}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := hostFlags{fleet: true, limit: time.Minute}
	if _, _, err := f.named(ctx, "a/one"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Where the hub has not told of all machines that is said, and nothing is looked for by its name alone.
func TestMachinesThatAreMissing(t *testing.T) {
	for _, partial := range []bool{false, true} {
		memberSays(t, fleetsocket.Status{Host: "a", Connected: true, Partial: partial, Hosts: []fleetsocket.Host{{Name: "a"}}})
		f := hostFlags{fleet: true, limit: time.Minute}
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			err := f.incidents(t.Context(), &out, "", asJSON)
			if missing := err != nil && strings.Contains(err.Error(), "may be missing"); missing != partial || !strings.Contains(out.String(), "a") {
				t.Errorf("partial: %t: %q, %v", partial, out.String(), err)
			}
		}
		if _, _, err := f.named(t.Context(), "one"); (err != nil) != partial {
			t.Errorf("partial: %t: any machine: %v", partial, err)
		}
		if set, name, err := f.named(t.Context(), "a/one"); err != nil || name != "one" || len(set.Hosts) != 1 {
			t.Errorf("partial: %t: a machine that is named: %q, %v", partial, name, err)
		}
	}
}
