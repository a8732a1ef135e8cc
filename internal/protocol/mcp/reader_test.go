package mcp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// What a reader remembers must never show: each list reads as if it were the first, whatever was read before.
func TestReaderRemembersWithoutShowingIt(t *testing.T) {
	pages := []string{
		`{"tools":[{"name":"a","annotations":{"readOnlyHint":true}},{"name":"b","inputSchema":{"type":"object"}}]}`,
		`{"tools":[{"name":"a","annotations":{"readOnlyHint":true}},{"name":"b","inputSchema":{"type":"string"}}]}`,
		`{"tools":[{"name":"a"},{"name":"b","annotations":{"idempotentHint":true}}],"nextCursor":"c"}`,
		`{"tools":[{"annotations":{"readOnlyHint":true},"name":"a"},{"name":"b","inputSchema":{"type":"object"},"_meta":{"n":1}}]}`,
		`{"tools":[{"nameless":true},7,{"name":"a"`,
		`{"tools":[]}`,
	}
	var used Reader
	for round := range 3 {
		for _, page := range pages {
			var fresh Reader
			want, got := Catalog{}, Catalog{}
			wantCursor := fresh.AddPage(want, Tools, []byte(page))
			gotCursor := used.AddPage(got, Tools, []byte(page))
			if diff := cmp.Diff(want, got); diff != "" || string(wantCursor) != string(gotCursor) {
				t.Errorf("round %d, %s: cursor %q, want %q\n%s", round, page, gotCursor, wantCursor, diff)
			}
		}
	}
	first, reordered := Catalog{}, Catalog{}
	used.AddPage(first, Tools, []byte(pages[0]))
	used.AddPage(reordered, Tools, []byte(pages[3]))
	if !first.Equal(reordered) {
		t.Error("member order or _meta makes a difference")
	}
}

func TestReaderIsBounded(t *testing.T) {
	var r Reader
	const all = 3 * pagesKept
	c := Catalog{}
	for i := range all {
		r.AddPage(c, Resources, fmt.Appendf(nil, `{"resources":[{"uri":"file:///%d"}]}`, i))
	}
	if kept := len(r.pages[Resources]); kept != pagesKept || cap(r.pages[Resources]) > 4*pagesKept {
		t.Errorf("%d pages are remembered, in room for %d", kept, cap(r.pages[Resources]))
	}
	if len(c) != all {
		t.Errorf("%d entries of %d were read", len(c), all)
	}
	long := `{"tools":[{"name":"` + strings.Repeat("x", longestKept) + `"}]}`
	r.AddPage(c, Tools, []byte(long))
	if len(r.pages[Tools]) > 0 || len(c) != all+1 {
		t.Error("a page that is too long is remembered, or not read")
	}
}

// BenchmarkReader reads a list of 30 tools for the first time, and again.
func BenchmarkReader(b *testing.B) {
	tools := make([]string, 30)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool%d","description":"Does the thing number %d with what it is given.","inputSchema":`+
			`{"type":"object","properties":{"path":{"type":"string","description":"where"},"count":{"type":"integer","minimum":0}},`+
			`"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, i, i)
	}
	page := []byte(`{"tools":[` + strings.Join(tools, ",") + `]}`)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			var r Reader
			r.AddPage(Catalog{}, Tools, page)
		}
	})
	b.Run("again", func(b *testing.B) {
		var r Reader
		for b.Loop() {
			r.AddPage(Catalog{}, Tools, page)
		}
	})
}

// An entry that is nested deeply costs no more than its length, and its hints are read all the same.
func TestDeepEntry(t *testing.T) {
	const depth = 9000
	page := func(rest string) []byte {
		return []byte(`{"tools":[{"name":"t","annotations":{"readOnlyHint":true},"inputSchema":` +
			strings.Repeat(`{"a":`, depth) + rest + strings.Repeat("}", depth) + `}]}`)
	}
	var r Reader
	one, same, other := Catalog{}, Catalog{}, Catalog{}
	begun := time.Now()
	for range 50 {
		EntryDigest(page("1"))
	}
	tier.Within(t, "the digest of 50 entries", time.Since(begun), time.Second)
	r.AddPage(one, Tools, page("1"))
	r.AddPage(same, Tools, page("1"))
	r.AddPage(other, Tools, page("2"))
	if !one["t"].ReadOnly || !one["t"].Idempotent || !one.Equal(same) || one.Equal(other) {
		t.Errorf("read as %+v, %+v", one, other)
	}
}
