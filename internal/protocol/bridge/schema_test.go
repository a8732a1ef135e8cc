package bridge

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// official are the official schemas by version, as they stand in testdata/schema.
var official = struct {
	sync.Mutex
	text     map[string]map[string]any
	resolved map[string]*jsonschema.Resolved
}{text: map[string]map[string]any{}, resolved: map[string]*jsonschema.Resolved{}}

// schemaOf reads the schema of a version. The definitions are found under "$defs" or "definitions".
func schemaOf(tb testing.TB, version string) (doc map[string]any, defs string) {
	doc = official.text[version]
	if doc == nil {
		text, err := os.ReadFile("testdata/schema/" + version + ".json")
		if err != nil {
			tb.Fatal(err)
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			tb.Fatal(err)
		}
		correct(doc)
		official.text[version] = doc
	}
	return doc, definitionsOf(doc)
}

func definitionsOf(doc map[string]any) string {
	if _, ok := doc["$defs"]; ok {
		return "$defs"
	}
	return "definitions"
}

// correct mends what the published schemas of the legacy era say of the limits and the default of a number in a form:
// integer. They are generated from schema.ts, which says number, and is the source of the specification; the modern era's
// are generated right. The conformance suite asks with "default": 95.5 (SEP-1034).
func correct(doc map[string]any) {
	number, _ := doc[definitionsOf(doc)].(map[string]any)["NumberSchema"].(map[string]any)
	properties, _ := number["properties"].(map[string]any)
	for _, name := range []string{"minimum", "maximum", "default"} {
		if one, ok := properties[name].(map[string]any); ok {
			one["type"] = "number"
		}
	}
}

// definition returns one definition of a version, nil for none.
func definition(tb testing.TB, version, name string) map[string]any {
	official.Lock()
	defer official.Unlock()
	doc, defs := schemaOf(tb, version)
	def, _ := doc[defs].(map[string]any)[name].(map[string]any)
	return def
}

// invalid says what the official schema of a version has against raw as a value of a definition; nil for nothing.
func invalid(tb testing.TB, version, name string, raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return resolvedOf(tb, version, name).Validate(v)
}

func resolvedOf(tb testing.TB, version, name string) *jsonschema.Resolved {
	official.Lock()
	defer official.Unlock()
	key := version + " " + name
	if r := official.resolved[key]; r != nil {
		return r
	}
	doc, defs := schemaOf(tb, version)
	if doc[defs].(map[string]any)[name] == nil {
		tb.Fatalf("%s has no %s", version, name)
	}
	text, err := json.Marshal(map[string]any{
		"$schema": doc["$schema"], defs: doc[defs], "allOf": []any{map[string]any{"$ref": "#/" + defs + "/" + name}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		tb.Fatal(err)
	}
	r, err := schema.Resolve(nil)
	if err != nil {
		tb.Fatalf("%s %s: %v", version, name, err)
	}
	official.resolved[key] = r
	return r
}

// mustBeValid fails the test when a version's schema rejects raw.
func mustBeValid(t *rapid.T, tb testing.TB, version, name string, raw, from []byte) {
	t.Helper()
	if err := invalid(tb, version, name, raw); err != nil {
		t.Fatalf("%s rejects this %s: %v\nmade:  %s\nfrom: %s", version, name, err, raw, from)
	}
}

// maker makes values that a version's schema accepts, by walking through the schema.
type maker struct {
	t       *rapid.T
	tb      testing.TB
	version string
}

// one makes a raw value of a definition.
func (m maker) one(name string) []byte {
	raw, err := json.Marshal(m.value(definition(m.tb, m.version, name), 0))
	if err != nil {
		m.t.Fatal(err)
	}
	return raw
}

// value makes a value that a schema accepts.
func (m maker) value(schema map[string]any, depth int) any {
	if schema == nil {
		return m.any(depth)
	}
	if ref, ok := schema["$ref"].(string); ok {
		return m.value(definition(m.tb, m.version, ref[strings.LastIndex(ref, "/")+1:]), depth)
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(list).Draw(m.t, "enum")
	}
	if list, ok := schema["anyOf"].([]any); ok {
		if depth > 6 {
			return m.value(list[0].(map[string]any), depth+1)
		}
		return m.value(rapid.SampledFrom(list).Draw(m.t, "anyOf").(map[string]any), depth+1)
	}
	if list, ok := schema["allOf"].([]any); ok {
		out := map[string]any{}
		for _, part := range list {
			for k, v := range m.value(part.(map[string]any), depth+1).(map[string]any) {
				out[k] = v
			}
		}
		return out
	}
	kind := schema["type"]
	if several, ok := kind.([]any); ok {
		kind = rapid.SampledFrom(several).Draw(m.t, "type")
	}
	switch kind {
	case "object":
		return m.object(schema, depth)
	case "array":
		items, _ := schema["items"].(map[string]any)
		out := []any{}
		for range rapid.IntRange(0, max(0, 3-depth/2)).Draw(m.t, "length") {
			out = append(out, m.value(items, depth+1))
		}
		return out
	case "string":
		return m.text(schema)
	case "integer":
		return rapid.IntRange(0, 1000).Draw(m.t, "integer")
	case "number":
		return rapid.SampledFrom([]any{0, 1, 0.5}).Draw(m.t, "number")
	case "boolean":
		return rapid.Bool().Draw(m.t, "boolean")
	case "null":
		return nil
	}
	if _, ok := schema["properties"]; ok {
		return m.object(schema, depth)
	}
	return m.any(depth)
}

func (m maker) object(schema map[string]any, depth int) any {
	out := map[string]any{}
	required := map[string]bool{}
	for _, name := range strings1(schema["required"]) {
		required[name] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range sorted(properties) {
		if required[name] || depth < 9 && rapid.Bool().Draw(m.t, name) {
			out[name] = m.value(properties[name].(map[string]any), depth+1)
		}
		if schema, ok := out[name].(map[string]any); ok && (name == "inputSchema" || name == "outputSchema") && m.version == mcp.ModernVersion {
			m.describe(schema)
		}
	}
	more, given := schema["additionalProperties"]
	if depth > 7 || !given && properties != nil {
		return out
	}
	inner, _ := more.(map[string]any)
	for range rapid.IntRange(0, 2).Draw(m.t, "more") {
		name := rapid.SampledFrom([]string{"x", "a b", "é", "io.modelcontextprotocol/related-task", "com.example/k"}).Draw(m.t, "name")
		out[name] = m.value(inner, depth+1)
	}
	return out
}

// describe adds to a JSON Schema what only modern ones have.
func (m maker) describe(schema map[string]any) {
	if rapid.Bool().Draw(m.t, "properties") {
		schema["properties"] = map[string]any{
			"x": rapid.Bool().Draw(m.t, "property"), "y": map[string]any{"type": "string"},
		}
	}
	if schema["type"] != "object" && rapid.Bool().Draw(m.t, "is object") {
		schema["type"] = "object"
	}
}

// any makes a value of any kind that both eras accept everywhere: their schemas leave fractions and null out of what
// they call any JSON value.
func (m maker) any(depth int) any {
	kinds := []string{"string", "integer", "boolean", "object", "array"}
	switch rapid.SampledFrom(kinds[:5-2*min(1, depth/5)]).Draw(m.t, "any") {
	case "string":
		return m.text(nil)
	case "integer":
		return rapid.IntRange(-5, 5).Draw(m.t, "integer")
	case "object":
		return map[string]any{"type": "object", "k": m.any(depth + 2)}
	case "array":
		return []any{m.any(depth + 2)}
	}
	return rapid.Bool().Draw(m.t, "boolean")
}

func (m maker) text(schema map[string]any) string {
	switch schema["format"] {
	case "uri":
		return rapid.SampledFrom([]string{"file:///a", "file:///a/b", "https://example.org/?q=1"}).Draw(m.t, "uri")
	case "byte":
		return "AAAA"
	}
	return rapid.SampledFrom([]string{"", "a", "<é>\n", "complete", "b~1", "2025-11-25"}).Draw(m.t, "text")
}

func strings1(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, one := range list {
		out = append(out, one.(string))
	}
	return out
}

// legacyVersions are the legacy versions that there is an official schema of.
var legacyVersions = []string{"2025-03-26", "2025-06-18", "2025-11-25"}

// requests are the requests of clients that both eras have, with the definitions of their results.
var requests = []struct {
	method          mcp.Method
	request, result string
}{
	{mcp.ToolsList, "ListToolsRequest", "ListToolsResult"},
	{mcp.ToolsCall, "CallToolRequest", "CallToolResult"},
	{mcp.PromptsList, "ListPromptsRequest", "ListPromptsResult"},
	{mcp.PromptsGet, "GetPromptRequest", "GetPromptResult"},
	{mcp.ResourcesList, "ListResourcesRequest", "ListResourcesResult"},
	{mcp.TemplatesList, "ListResourceTemplatesRequest", "ListResourceTemplatesResult"},
	{mcp.ResourcesRead, "ReadResourceRequest", "ReadResourceResult"},
	{mcp.Complete, "CompleteRequest", "CompleteResult"},
}
