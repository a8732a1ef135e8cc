package catalog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

func nextCursor(page []byte) []byte { return jsonrpc.Find(page, "nextCursor").Of(page) }

func TestPages(t *testing.T) {
	v := New(Never).Merge(plain("a", "b"), []*Lists{tools("1", "2", "3"), tools("4", "5")}, nil)
	whole := walk(t, v, mcp.Tools, 0)
	for _, size := range []int{-1, 1, 2, 3, 4, 5, 6} {
		if diff := cmp.Diff(whole, walk(t, v, mcp.Tools, size)); diff != "" {
			t.Errorf("pages of %d: %s", size, diff)
		}
	}
	if page := mustPage(t, v, mcp.Tools, nil, 5); nextCursor(page) != nil {
		t.Errorf("a page follows the last: %s", page)
	}
}

func TestCursor(t *testing.T) {
	merge := func(names ...string) *View {
		return New(Never).Merge(plain("a"), []*Lists{{mcp.Tools: entries(mcp.Tools, names...), mcp.Prompts: entries(mcp.Prompts, names...)}}, nil)
	}
	v := merge("1", "2", "3")
	good := nextCursor(mustPage(t, v, mcp.Tools, nil, 1))
	for _, other := range []*View{v, merge("1", "2", "3")} { // the second is another gateway with the same servers
		if diff := cmp.Diff(`{"tools":[{"name":"2"},{"name":"3"}]}`, string(mustPage(t, other, mcp.Tools, good, 2))); diff != "" {
			t.Error(diff)
		}
	}
	made := func(text string) []byte {
		return jsonrpc.AppendQuoted(nil, base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	digest := v.short(mcp.Tools)
	for _, tc := range []struct {
		name   string
		v      *View
		l      mcp.List
		cursor []byte
	}{
		{"the list is another", merge("1", "2", "4"), mcp.Tools, good},
		{"the order is another", merge("2", "1", "3"), mcp.Tools, good},
		{"of another list", v, mcp.Prompts, good},
		{"empty", v, mcp.Tools, []byte(`""`)},
		{"no string", v, mcp.Tools, []byte(`7`)},
		{"no base64", v, mcp.Tools, []byte(`"!"`)},
		{"no JSON", v, mcp.Tools, made(`{`)},
		{"before the beginning", v, mcp.Tools, made(`{"l":"tools","o":-1,"d":"` + digest + `"}`)},
		{"behind the end", v, mcp.Tools, made(`{"l":"tools","o":3,"d":"` + digest + `"}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if page, err := tc.v.Page(tc.l, tc.cursor, 0); !errors.Is(err, ErrCursor) {
				t.Errorf("%s, %v", page, err)
			}
		})
	}
}

// A list that would be too long a line for clients comes in pages, asked for or not; a single long entry comes anyway.
func TestPagesAreNoLongerThanClientsBear(t *testing.T) {
	var array []string
	for i, n := range []int{PageBytes / 3, PageBytes / 3, PageBytes / 2, 2 * PageBytes, 10} {
		array = append(array, fmt.Sprintf(`{"name":"%d","x":"%s"}`, i, strings.Repeat("x", n)))
	}
	items, _ := Items(mcp.Tools, []byte(`{"tools":[`+strings.Join(array, ",")+`]}`))
	v := New(Never).Merge(plain("a"), []*Lists{{mcp.Tools: items}}, nil)
	var counts []int
	var cursor []byte
	for {
		page := mustPage(t, v, mcp.Tools, cursor, 0)
		of, next := Items(mcp.Tools, page)
		counts = append(counts, len(of))
		if cursor = next; cursor == nil {
			break
		}
	}
	if diff := cmp.Diff([]int{2, 1, 1, 1}, counts); diff != "" {
		t.Error(diff)
	}
}
