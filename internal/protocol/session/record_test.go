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
	s.Listens = []*Listen{{ID: []byte(`7.0`), Line: []byte(`{"id":7.0}`), Acked: []byte(`{}`)}}
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

// TestARecordOfTheReleaseBefore: the names are those that it has written, at the same version. Bytes are base64 there.
func TestARecordOfTheReleaseBefore(t *testing.T) {
	const before = `{"format":3,"era":1,"initialize":"eyAibiI6IDEgfQ==","protocol_version":"2025-11-25","initialize_result":"e30=","initialized":true,
		"meta":"eyJhIjoxfQ==","log_level":"eyJsZXZlbCI6ImRlYnVnIn0=","subscribed":["eyJ1cmkiOiJmaWxlOi8vL2EifQ=="],
		"listens":[{"ID":"Nw==","Line":"eyJpZCI6N30=","Filter":"e30=","Acked":"e30=","Cuts":2}],
		"reading":[null,null,{},null],"seen":[{"a":{"Digest":[1,2,3],"ReadOnly":true,"Idempotent":true}},null,null,null],
		"translated":true,"repeats":{"login":"e30="},"states":[18446744073709551615],"tasks":["e30="],"withdrawn":["Nw==","ImEi"]}`
	var r Record
	if err := json.Unmarshal([]byte(before), &r); err != nil {
		t.Fatal(err)
	}
	want := Record{
		Format: RecordVersion, Translated: true, Repeats: map[string][]byte{"login": []byte("{}")}, States: []uint64{1<<64 - 1},
		Tasks: [][]byte{[]byte("{}")}, Withdrawn: [][]byte{[]byte("7"), []byte(`"a"`)},
		Session: Session{
			Era: mcp.Legacy, InitParams: []byte(`{ "n": 1 }`), Version: "2025-11-25", InitResult: []byte("{}"), Initialized: true, Meta: []byte(`{"a":1}`),
			LogLevel: []byte(`{"level":"debug"}`), Subscriptions: [][]byte{[]byte(`{"uri":"file:///a"}`)},
			Listens: []*Listen{{ID: []byte("7"), Line: []byte(`{"id":7}`), Acked: []byte("{}")}},
			Reading: [mcp.Lists]mcp.Catalog{mcp.Resources: {}},
			Seen:    [mcp.Lists]mcp.Catalog{mcp.Tools: {"a": {Digest: [32]byte{1, 2, 3}, ReadOnly: true, Idempotent: true}}},
		},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
