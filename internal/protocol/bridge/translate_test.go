package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Each test here draws messages that the sender's era accepts, and asks the official schema of the receiver's era about
// what became of them. For a long run: go test -rapid.checks=100000.

func TestResultsOfAModernServerAreValidForLegacyClients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		r := rapid.SampledFrom(requests).Draw(rt, "request")
		was := maker{rt, t, mcp.ModernVersion}.one(r.result)
		mustBeValid(rt, t, mcp.ModernVersion, r.result, was, nil) // the maker makes what it says
		mustBeValid(rt, t, version, r.result, legacyResult(r.method, version, was), was)
	})
}

func TestResultsOfALegacyServerAreValidForModernClients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		r := rapid.SampledFrom(requests).Draw(rt, "request")
		was := maker{rt, t, version}.one(r.result)
		mustBeValid(rt, t, version, r.result, was, nil)
		mustBeValid(rt, t, mcp.ModernVersion, r.result, modernResult(r.method, was), was)
	})
}

func TestHandshakes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		discovered := maker{rt, t, mcp.ModernVersion}.one("DiscoverResult")
		mustBeValid(rt, t, version, "InitializeResult", initializeResult(discovered, version, nil), discovered)
		initialized := maker{rt, t, version}.one("InitializeResult")
		mustBeValid(rt, t, mcp.ModernVersion, "DiscoverResult", discoverResult(initialized), initialized)
		meta := maker{rt, t, mcp.ModernVersion}.one("RequestMetaObject")
		can := abilitiesOf(member(meta, mcp.MetaClientCapabilities))
		mustBeValid(rt, t, mcp.NewestLegacy, "InitializeRequest", mcp.InitializeLine([]byte("1"), initializeParams(meta, can), ""), meta)
	})
}

// greetLegacy brings a bridge for a legacy client to where it works.
func greetLegacy(fail func(string, ...any), params []byte, discovered string) (*carrier, []byte) {
	b := carried(New(Options{Client: mcp.Legacy}))
	out := b.FromClient(jsonrpc.AppendRequest(nil, []byte(`"init"`), "initialize", params), start)
	if len(out.ToServer) != 1 {
		fail("initialize led to %q", out)
	}
	asked := slices.Clone(out.ToServer[0].Line)
	id := member(asked, "id")
	out = b.FromServer(jsonrpc.AppendResult(nil, id, []byte(discovered)), start)
	if len(out.ToClient) != 1 {
		fail("the handshake led to %q", out)
	}
	return b, asked
}

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",` +
	`"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{},"logging":{}},` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`

func TestRequestsOfALegacyClientAreValidForModernServers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		make := maker{rt, t, version}
		hello := make.one("InitializeRequest")
		b, asked := greetLegacy(rt.Fatalf, set(member(hello, "params"), []byte(`"`+version+`"`), "protocolVersion"), discovered)
		mustBeValid(rt, t, mcp.ModernVersion, "DiscoverRequest", asked, hello)
		b.FromClient([]byte(`{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":"info"}}`), start)
		for i := range 4 {
			r := rapid.SampledFrom(requests).Draw(rt, "request")
			line := set(set(make.one(r.request), []byte(`"2.0"`), "jsonrpc"), []byte{byte('1' + i)}, "id")
			out := b.FromClient(line, start)
			if len(out.ToServer) != 1 {
				rt.Fatalf("%s led to %+v", line, out)
			}
			mustBeValid(rt, t, mcp.ModernVersion, r.request, out.ToServer[0].Line, line)
		}
	})
}

func TestRequestsOfAModernClientAreValidForLegacyServers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for range 4 {
			r := rapid.SampledFrom(requests).Draw(rt, "request")
			b := carried(New(Options{Client: mcp.Modern, Key: make([]byte, 32)}))
			make := maker{rt, t, mcp.ModernVersion}
			line := set(set(make.one(r.request), []byte(`"2026-07-28"`), "params", "_meta", mcp.MetaProtocolVersion), []byte("5"), "id")
			line = set(line, without(member(line, "params"), "requestState"), "params")
			out := b.FromClient(line, start)
			if len(out.ToServer) != 1 {
				rt.Fatalf("%s led to %+v", line, out)
			}
			hello := out.ToServer[0].Line
			mustBeValid(rt, t, mcp.NewestLegacy, "InitializeRequest", hello, line)
			said := lines(b.FromServer(jsonrpc.AppendResult(nil, member(hello, "id"), []byte(initialized)), start).ToServer)
			last := said[len(said)-1]
			if before := said[len(said)-2]; jsonrpc.EqualString(member(before, "method"), mcp.SetLevel.String()) {
				mustBeValid(rt, t, mcp.NewestLegacy, "SetLevelRequest", before, line)
			}
			mustBeValid(rt, t, mcp.NewestLegacy, r.request, last, line)
			if strings.Contains(string(member(last, "params", "_meta")), reserved) {
				rt.Fatalf("reserved keys are left: %s", last)
			}
		}
	})
}

const initialized = `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},` +
	`"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{}}}`

var asksOf = map[string]string{
	askSample: "CreateMessageRequest", askForm: "ElicitRequest", askRoots: "ListRootsRequest",
}

func TestQuestionsOfAModernServerAreValidForLegacyClients(t *testing.T) {
	const all = canRoots | canSample | canSampleTools | canSampleContext | canForm | canURL
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		was := maker{rt, t, mcp.ModernVersion}.one("InputRequest")
		method, _ := jsonrpc.Unquote(member(was, "method"))
		params, able := legacyAsk(method, member(was, "params"), all.since(version), version, []byte(`"b~1"`))
		if !able {
			return // the call fails, honestly
		}
		line := jsonrpc.AppendRequest(nil, []byte(`"b~1"`), method, params)
		mustBeValid(rt, t, version, asksOf[method], line, was)
	})
}

func TestQuestionsOfALegacyServerAreValidForModernClients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		names := []string{"CreateMessageRequest", "ListRootsRequest", "ElicitRequest"}
		if version == "2025-03-26" {
			names = names[:2]
		}
		was := maker{rt, t, version}.one(rapid.SampledFrom(names).Draw(rt, "question"))
		method, _ := jsonrpc.Unquote(member(was, "method"))
		mustBeValid(rt, t, mcp.ModernVersion, "InputRequest", modernAsk(method, member(was, "params")), was)
	})
}

func TestAnswersOfClientsAreValidForServers(t *testing.T) {
	results := map[string]string{askSample: "CreateMessageResult", askForm: "ElicitResult", askRoots: "ListRootsResult"}
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(legacyVersions).Draw(rt, "version")
		method := rapid.SampledFrom([]string{askSample, askRoots, askForm}).Draw(rt, "method")
		if version == "2025-03-26" && method == askForm {
			return
		}
		was := maker{rt, t, version}.one(results[method])
		mustBeValid(rt, t, mcp.ModernVersion, "InputResponse", was, was) // a legacy client's goes on as it is
		was = maker{rt, t, mcp.ModernVersion}.one(results[method])
		now := legacyAnswer(method, version, was)
		if version < mcp.NewestLegacy && (strings.Contains(string(was), `"tool_`) || method == askForm) {
			return // an answer that such a server has not asked for
		}
		mustBeValid(rt, t, version, results[method], now, was)
	})
}

// The schemas are asked, and say no when they should.
func TestSchemasRefuse(t *testing.T) {
	for _, tc := range []struct{ version, name, raw string }{
		{mcp.ModernVersion, "CallToolResult", `{"content":[]}`},
		{mcp.ModernVersion, "ListToolsResult", `{"resultType":"complete","tools":[]}`},
		{mcp.ModernVersion, "CallToolRequest", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`},
		{"2025-11-25", "CallToolResult", `{"content":[],"structuredContent":5}`},
		{"2025-11-25", "ListToolsResult", `{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"x":true}}}]}`},
		{"2025-06-18", "ElicitRequest", `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"x":{"type":"array"}}}}}`},
		{"2025-03-26", "CallToolResult", `{"content":[{"type":"resource_link","name":"n","uri":"f:/a"}]}`},
	} {
		if invalid(t, tc.version, tc.name, []byte(tc.raw)) == nil {
			t.Errorf("%s takes %s as a %s", tc.version, tc.raw, tc.name)
		}
	}
}

func TestLegacyForms(t *testing.T) {
	for name, tc := range map[string]struct{ version, field, want string }{
		"limits that are not whole numbers": {"2025-11-25", `{"type":"number","minimum":0.5,"maximum":10,"default":95.5}`, `{"type":"number","minimum":0.5,"maximum":10,"default":95.5}`},
		"titles as they were":               {"2025-06-18", `{"type":"string","title":"T","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, `{"type":"string","title":"T","enum":["a","b"],"enumNames":["A","B"]}`},
		"titles as they are":                {"2025-11-25", `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`},
		"several of many, before that":      {"2025-06-18", `{"type":"array","items":{"type":"string","enum":["a"]}}`, ``},
		"several of many":                   {"2025-11-25", `{"type":"array","items":{"type":"string","enum":["a"]}}`, `{"type":"array","items":{"type":"string","enum":["a"]}}`},
	} {
		params := `{"message":"m","requestedSchema":{"type":"object","properties":{"x":` + tc.field + `}}}`
		got, able := legacyAsk(askForm, []byte(params), canForm, tc.version, nil)
		want := strings.Replace(params, tc.field, tc.want, 1)
		if tc.want == "" {
			if able {
				t.Errorf("%s: got %s, want none", name, got)
			}
			continue
		}
		if !able || string(got) != want {
			t.Errorf("%s: got %s (%v)\nwant %s", name, got, able, want)
			continue
		}
		line := jsonrpc.AppendRequest(nil, []byte("1"), askForm, got)
		if err := invalid(t, tc.version, "ElicitRequest", line); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLegacyToolsAndContent(t *testing.T) {
	for name, tc := range map[string]struct {
		m                     mcp.Method
		version, result, want string
	}{
		"schemas that are true or false": {mcp.ToolsList, "2025-11-25",
			`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"x":true,"y":false,"z":{"type":"string"}},"required":["x"]}}]}`,
			`{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}},"z":{"type":"string"}},"required":["x"]}}]}`},
		"an output that is not an object": {mcp.ToolsList, "2025-11-25",
			`{"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}],"ttlMs":5,"cacheScope":"public","resultType":"complete"}`,
			`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`},
		"a structure that is not an object, said as text already": {mcp.ToolsCall, "2025-11-25",
			`{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"[1]"}]}`},
		"a link for a client that knows none": {mcp.ToolsCall, "2025-03-26",
			`{"content":[{"type":"resource_link","name":"n","uri":"f:/a","annotations":{"priority":1}}]}`,
			`{"content":[{"type":"text","text":"Resource n: f:/a","annotations":{"priority":1}}]}`},
		"sound for a client that knows none": {mcp.PromptsGet, "2024-11-05",
			`{"messages":[{"role":"user","content":{"type":"audio","mimeType":"audio/wav","data":"AAAA"}}]}`,
			`{"messages":[{"role":"user","content":{"type":"text","text":"Audio (audio/wav, 4 characters of base64), which this version of the protocol cannot carry"}}]}`},
	} {
		if got := string(legacyResult(tc.m, tc.version, []byte(tc.result))); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// A server may describe any number of arguments by true: each was a copy of the whole schema once, while everybody waited.
func TestSchemaOfManyTruthValues(t *testing.T) {
	var properties, want []string
	for i := range 20_000 {
		properties = append(properties, fmt.Sprintf(`"p%d":true`, i))
		want = append(want, fmt.Sprintf(`"p%d":{}`, i))
	}
	tool := func(properties []string) string {
		return `{"name":"t","inputSchema":{"type":"object","properties":{` + strings.Join(properties, ",") + `}}}`
	}
	begun := time.Now()
	if got := string(legacyTool([]byte(tool(properties)))); got != tool(want) {
		t.Errorf("not translated: %.200s", got)
	}
	tier.Within(t, "the translation", time.Since(begun), 5*time.Second)
}
