package session

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// TestARecordedSessionIsTheSame: to the last field, those included that a later change will add.
func TestARecordedSessionIsTheSame(t *testing.T) {
	s := &Session{
		Era: mcp.Legacy, InitParams: []byte(`{ "n": 9007199254740993, "t": "<\u00e9>" }`), Version: "2025-11-25", InitResult: []byte(`{ }`),
		Initialized: true, Meta: []byte(`{"a":1}`),
	}
	s.SetLogLevel([]byte(`{"level":"debug"}`))
	s.Subscribe([]byte(`{"uri":"file:///a"}`))
	s.Subscribe([]byte(`{"uri":"file:///b", "x":1}`))
	l := s.OpenListen([]byte(`7.0`), []byte(`{"id":7.0}`), []byte(`{"notifications":{"toolsListChanged":true}}`))
	l.Acked = []byte(`{}`)
	var r mcp.Reader
	s.SawPage(&r, mcp.Tools, true, []byte(`{"tools":[{"name":"a","annotations":{"readOnlyHint":true}}]}`))
	s.SawPage(&r, mcp.Prompts, true, []byte(`{"prompts":[]}`))
	s.SawPage(&r, mcp.Resources, true, []byte(`{"resources":[{"uri":"x"}],"nextCursor":"c"}`))
	for name, s := range map[string]*Session{"full": s, "empty": {}} {
		text, err := json.Marshal(Record{Session: *s})
		if err != nil {
			t.Fatal(err)
		}
		var record Record
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		got := record.Session
		if diff := cmp.Diff(s, &got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s (-was +is):\n%s", name, diff)
		}
	}
}
