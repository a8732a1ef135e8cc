package jsonrpc

import "testing"

// gathered expects the elements of an array, and no other.
func gathered(array string) *Gathering {
	g := &Gathering{}
	for at := range Elements([]byte(array)) {
		g.Expect(at.Of([]byte(array)))
	}
	g.Complete()
	return g
}

func TestGathering(t *testing.T) {
	if array, done := gathered(`[{"jsonrpc":"2.0","method":"n"},7,[{"jsonrpc":"2.0","id":9,"method":"m"}]]`).Done(); array != nil || !done {
		t.Errorf("of no request: %s, done %v", array, done)
	}
	request := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"m"}` }
	g := gathered(`[` + request("1") + `,{"id":"b"},` + request("1") + `,` + request("3") + `,` + request(`"\ud800"`) + `]`)
	if g.Take([]byte("2"), []byte("{}")) || g.Drop([]byte("2")) || g.Awaits([]byte("2")) {
		t.Error("an id that no element has is awaited")
	}
	if !g.Awaits([]byte("3")) || !g.Drop([]byte("3")) || g.Awaits([]byte("3")) {
		t.Error("a request that is cancelled is awaited")
	}
	for i, id := range []string{"1", `"b"`, "\"\uFFFD\"", "1"} {
		if _, done := g.Done(); done {
			t.Errorf("done after %d of 4 answers", i)
		}
		if !g.Take([]byte(id), []byte(`{"id":`+id+`}`)) {
			t.Errorf("the answer to %s is not taken", id)
		}
	}
	if array, done := g.Done(); string(array) != "[{\"id\":1},{\"id\":\"b\"},{\"id\":\"\uFFFD\"},{\"id\":1}]" || !done {
		t.Errorf("%s, done %v", array, done)
	}
	if g.Take([]byte("1"), []byte("{}")) {
		t.Error("a third answer is taken")
	}
}

// An element may be answered before the next one is handled.
func TestAGatheringWaitsForAllElements(t *testing.T) {
	var g Gathering
	g.Expect([]byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`))
	if g.Drop([]byte("2")) {
		t.Error("an element that has not come is dropped")
	}
	g.Take([]byte("1"), []byte("A"))
	if _, done := g.Done(); done {
		t.Error("done before the last element has come")
	}
	g.Expect([]byte(`{"jsonrpc":"2.0","id":2,"method":"m"}`))
	g.Take([]byte("2"), []byte("B"))
	g.Complete()
	if array, done := g.Done(); string(array) != "[A,B]" || !done {
		t.Errorf("%s, done %v", array, done)
	}
}
