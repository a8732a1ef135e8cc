package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// memberMain is the program fleet-member: the member of a fleet of one machine, until its stdin is closed. It keeps in memory what
// gateways have it keep.
func memberMain() int {
	listener, err := control.ListenAt(fleetSocket())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	registry := enginemem.New()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/entry", func(w http.ResponseWriter, r *http.Request) {
		var e fleetsocket.Entry
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var a fleetsocket.EntryAnswer
		var at engine.Entry
		var err error
		switch e.Op {
		case fleetsocket.Get:
			at, err = registry.Get(r.Context(), e.Key)
		case fleetsocket.Write:
			at.Revision, err = registry.CAS(r.Context(), e.Key, e.Value, engine.Revision(e.Before))
		}
		a.Value, a.Revision = at.Value, uint64(at.Revision)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			a.Refused = fleetsocket.NotFound
		case errors.Is(err, engine.ErrConflict):
			a.Refused = fleetsocket.Conflict
		case err != nil:
			a.Refused = fleetsocket.Maybe
		}
		_ = json.NewEncoder(w).Encode(a) // who has asked may be gone
	})
	server := http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Fprintln(os.Stderr, "The member listens")
	_ = server.Serve(listener) // it is closed
	return 0
}
