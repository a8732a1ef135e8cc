package main

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// What a gateway asks of the registry is done, and what comes of it has its word.
func TestEntries(t *testing.T) {
	r := enginemem.New()
	for _, step := range []struct {
		ask     fleetsocket.Entry
		refused string
		value   string
	}{
		{fleetsocket.Entry{Op: fleetsocket.Get, Key: "session.g.a"}, fleetsocket.NotFound, ""},
		{fleetsocket.Entry{Op: fleetsocket.Write, Key: "session.g.a", Value: []byte("1")}, "", ""},
		{fleetsocket.Entry{Op: fleetsocket.Write, Key: "session.g.a", Value: []byte("2")}, fleetsocket.Conflict, ""},
		{fleetsocket.Entry{Op: fleetsocket.Get, Key: "session.g.a"}, "", "1"},
		{fleetsocket.Entry{Op: "other", Key: "session.g.a"}, fleetsocket.Maybe, ""},
	} {
		if a := doEntry(t.Context(), r, step.ask); a.Refused != step.refused || string(a.Value) != step.value || step.refused != "" && a.Why == "" {
			t.Errorf("%s %q: %+v", step.ask.Op, step.ask.Value, a)
		}
	}
	for key, own := range map[string]bool{
		"session.g.a": true, "lease.gateway.g": true, "lease.judge": false, "lease.gateway": false, "state.a": false, "esc.a": false, "token.a": false, "sessions.a": false,
	} {
		if sessions.Own(key) != own {
			t.Errorf("a gateway's own %s: %t", key, !own)
		}
	}
}
