package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settled is a client that has settled on a version of the legacy era, before servers a and b.
func settled(t *testing.T, version string) (*world, *client) {
	w := newWorld(t, Options{})
	for _, name := range []string{"a", "b"} {
		w.plan(name, plan{tools: []string{"do", "hang"}})
	}
	w.serve(named("a"), named("b"))
	c := w.client()
	c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c"}}}`)
	c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.tools()
	return w, c
}

// request is a request with a raw id; one with a tool calls that.
func request(id, methodOrTool string) string {
	if strings.HasPrefix(methodOrTool, "a_") || strings.HasPrefix(methodOrTool, "b_") {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q}}`, id, methodOrTool)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, id, methodOrTool)
}

func arrayOf(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

// gathered fails the test unless one array came, with one answer to each raw id. The answer has the text in it.
func gathered(t *testing.T, in *inbox, wanted map[string]string) {
	t.Helper()
	var elements []json.RawMessage
	if len(in.lines) != 1 || json.Unmarshal([]byte(in.lines[0]), &elements) != nil {
		t.Fatalf("no single array: %q", in.lines)
	}
	got := map[string]string{}
	for _, one := range elements {
		m := parse(t, string(one))
		if _, twice := got[string(m.ID)]; twice {
			t.Errorf("two answers to %s: %s", m.ID, in.lines[0])
		}
		got[string(m.ID)] = string(one)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("answered ids (-want +got):\n%s", diff)
	}
	for id, text := range wanted {
		if !strings.Contains(got[id], text) {
			t.Errorf("the answer to %s has no %s: %s", id, text, got[id])
		}
	}
	in.lines = nil
}

// A JSON array of a client of 2025-03-26 is answered with one array, whoever answers its elements, and when.
func TestArrays(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	t.Run("of two servers and of the gateway", func(t *testing.T) {
		_, c := settled(t, "2025-03-26")
		in := c.ask(arrayOf(request("1", "a_do"), note, request("2", "ping"), request(`"3"`, "b_do"), request("4", "a_none"), request("5", "tools/list")))
		gathered(t, in, map[string]string{"1": `"text":"a"`, "2": `"result":{}`, `"3"`: `"text":"b"`, "4": "Unknown tool", "5": "b_hang"})
	})
	t.Run("it waits for the last answer, and a second answer is none", func(t *testing.T) {
		w, c := settled(t, "2025-03-26")
		in := c.ask(arrayOf(request("1", "a_hang"), request("2", "ping"), request("3", "b_hang")))
		want(t, "early", in)
		a, b := w.of("a")[0], w.of("b")[0]
		a.answer(a.open[0], `"one"`)
		a.answer(a.open[0], `"once more"`)
		want(t, "with one of three", in)
		b.answer(b.open[0], `"three"`)
		gathered(t, in, map[string]string{"1": `"one"`, "2": `"result":{}`, "3": `"three"`})
		b.answer(b.open[0], `"once more"`)
		want(t, "afterwards", in)
	})
	t.Run("without what was cancelled", func(t *testing.T) {
		w, c := settled(t, "2025-03-26")
		in := c.ask(arrayOf(request("1", "a_hang"), request("2", "b_hang")))
		c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		b := w.of("b")[0]
		b.answer(b.open[0], `"two"`)
		gathered(t, in, map[string]string{"2": `"two"`})
	})
	t.Run("its server ends", func(t *testing.T) {
		w, c := settled(t, "2025-03-26")
		in := c.ask(arrayOf(request("1", "a_hang"), request("2", "b_do")))
		w.of("a")[0].end()
		w.settle()
		gathered(t, in, map[string]string{"1": "the server has ended", "2": `"text":"b"`})
	})
	t.Run("what must not be among them is refused among them", func(t *testing.T) {
		w, c := settled(t, "2025-03-26")
		first := w.of("a")[0]
		in := c.ask(arrayOf(request("1", "a_do"), request("2", "initialize"), request("1", "ping"), `{"jsonrpc":"2.0","id":3}`, "7"))
		if len(in.lines) == 1 && strings.Count(in.lines[0], `"id":1,`) == 2 { // the id that is there twice is refused once
			in.lines[0] = strings.Replace(in.lines[0], `"id":1,"error"`, `"id":"twice","error"`, 1)
		}
		gathered(t, in, map[string]string{"1": `"text":"a"`, `"twice"`: "-32600", "2": "-32600", "3": "-32600"})
		if first.closed || c.version != "2025-03-26" {
			t.Error("it has begun a new session")
		}
	})
	t.Run("notifications alone are not answered", func(t *testing.T) {
		_, c := settled(t, "2025-03-26")
		want(t, "answer", c.ask(arrayOf(note, note)))
	})
}

// Other versions have no arrays: each request gets an error, and no server hears of any.
func TestArraysOfOtherVersions(t *testing.T) {
	const refused = `"error":{"code":-32600,"message":"invalid request: this protocol version has no batches"}}`
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		w, c := settled(t, version)
		in := c.ask(arrayOf(request("1", "a_do"), `{"jsonrpc":"2.0","method":"notifications/x"}`, request(`"b"`, "ping")))
		want(t, version, in, `{"jsonrpc":"2.0","id":1,`+refused, `{"jsonrpc":"2.0","id":"b",`+refused)
		if n := w.of("a")[0].count("tools/call"); n != 0 {
			t.Errorf("%s: a call has reached the server", version)
		}
	}
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true})
	w.serve(named("a"))
	c := w.client()
	c.modern("1", "tools/list", "")
	want(t, "of the modern era", c.ask(arrayOf(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{`+modernMeta+`}}`)),
		`{"jsonrpc":"2.0","id":2,`+refused)
}

// A stream that counts answers hears which do not come: its client has cancelled them. Who is answered hears nothing of the kind.
func TestACancelledRequestEndsItsStream(t *testing.T) {
	_, c := settled(t, "2025-11-25")
	in, other := c.ask(request("7", "a_hang")), c.ask(request("8", "a_hang"))
	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if diff := cmp.Diff([]string{"7"}, in.withdrawn); diff != "" {
		t.Error(diff)
	}
	c.ask(`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}}`)
	if len(other.withdrawn) > 0 || len(other.lines) != 1 {
		t.Errorf("of a session that began anew: answers %q, withdrawn %q", other.lines, other.withdrawn)
	}
}
