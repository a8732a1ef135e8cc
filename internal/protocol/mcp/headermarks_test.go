package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Both who repeats arguments in headers and who demands them read a schema by ParamHeaders.
func TestParamHeaders(t *testing.T) {
	text, err := os.ReadFile("../../../testdata/marks/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Name    string
		Schema  json.RawMessage
		Headers *string // nil: a rule is broken
	}
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) == 0 {
		t.Fatalf("%d schemas, %v", len(rows), err)
	}
	for _, row := range rows {
		headers, err := ParamHeaders(row.Schema)
		if row.Headers == nil != (err != nil) {
			t.Errorf("%s: %v, %v", row.Name, headers, err)
			continue
		}
		var got []string
		for _, p := range headers {
			got = append(got, p.Header+"="+strings.Join(p.Path, "."))
		}
		if s := strings.Join(got, " "); row.Headers != nil && s != *row.Headers {
			t.Errorf("%s: %q, want %q", row.Name, s, *row.Headers)
		}
	}
}

// Schemas come from servers, and may be anything.
func TestParamHeadersOfOddSchemas(t *testing.T) {
	nested := func(depth int) string {
		return `{` + strings.Repeat(`"properties":{"p":{"type":"object",`, depth) + `"properties":{"a":{"type":"string","x-mcp-header":"A"}}` +
			strings.Repeat("}}", depth) + "}"
	}
	wide := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"H%d"}`, i, i))
		}
		return `{"properties":{` + strings.Join(all, ",") + `}}`
	}
	for name, tc := range map[string]struct {
		schema string
		want   int
	}{
		"nonsense":     {`nonsense`, 0},
		"no schema":    {``, 0},
		"deep":         {nested(20), 1},
		"4500 levels":  {nested(4500), 0},
		"many headers": {wide(1000), 1000},
	} {
		if got, err := ParamHeaders([]byte(tc.schema)); len(got) != tc.want || err != nil {
			t.Errorf("%s: %d headers, want %d; %v", name, len(got), tc.want, err)
		}
	}
}

func TestIsHeaderName(t *testing.T) {
	for _, c := range []byte("@[\\]{}()/:;,<=>?\" \x00\x7f\x80") {
		if isHeaderName(string(rune(c))) {
			t.Errorf("%q passes as a header name", c)
		}
	}
	if !isHeaderName("azAZ09!#$%&'*+-.^_`|~") {
		t.Error("a good header name is refused")
	}
}
