package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schemaReader reads from a JSON schema what may be in a file: the paths of its keys, and below them, behind =, the words that are valid.
type schemaReader struct {
	root map[string]any
	keys map[string]bool
}

func readSchema(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := schemaReader{keys: map[string]bool{}}
	if err := json.Unmarshal(text, &r.root); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	r.walk(r.root, "", 0)
	return r.keys
}

func (r schemaReader) walk(value any, path string, depth int) {
	n, ok := value.(map[string]any)
	if !ok || depth > 30 { // one that is within itself
		return
	}
	if ref, ok := n["$ref"].(string); ok {
		var to any = r.root
		for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			inside, _ := to.(map[string]any)
			to = inside[name]
		}
		r.walk(to, path, depth+1)
	}
	for _, key := range []string{"properties", "patternProperties"} {
		named, _ := n[key].(map[string]any)
		for name, one := range named {
			if key == "patternProperties" {
				name = "*"
			}
			r.keys[path+"/"+name] = true
			r.walk(one, path+"/"+name, depth+1)
		}
	}
	r.walk(n["additionalProperties"], path+"/*", depth+1)
	r.walk(n["items"], path+"/[]", depth+1)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := n[key].([]any)
		for _, one := range list {
			r.walk(one, path, depth+1)
		}
	}
	names, _ := n["propertyNames"].(map[string]any)
	r.words(names["enum"], path+"/*")
	r.words(n["enum"], path)
	if one, ok := n["const"]; ok {
		r.words([]any{one}, path)
	}
}

func (r schemaReader) words(enum any, path string) {
	list, _ := enum.([]any)
	for _, word := range list {
		r.keys[fmt.Sprintf("%s=%v", path, word)] = true
	}
}

// TestOlderSettings: whatever could be in a file of the release before still can, with a warning where that says nothing any more. Flags that are gone
// are refused with what there is in their place.
func TestOlderSettings(t *testing.T) {
	before := older(t)
	t.Parallel()
	now, was := &joined{workspace: newWorkspace(t), name: "now"}, &joined{workspace: newWorkspace(t), name: "before", program: before}
	file := func(name, text string) string {
		path := now.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	refused := func(what string, args []string, wanted string) {
		t.Helper()
		out, err := now.command(args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), wanted) {
			t.Errorf("%s: %v, want %q\n%s", what, err, wanted, out)
		}
	}

	gone := regexp.MustCompile(`/(policy|per_class)/\*=monitor_blind$`) // editors mark it, and it is read
	for _, name := range []string{"outlive", "registry"} {
		here := readSchema(t, filepath.Join(tools.root, "..", "schema", name+".schema.json"))
		for key := range readSchema(t, olderFile(t, "schema/"+name+".schema.json")) {
			if !here[key] && !gone.MatchString(key) {
				t.Errorf("%s.schema.json: %s is gone", name, key)
			}
		}
	}
	for keys, hint := range map[string]string{
		"policy: {monitor_blind: [escalate]}":        "a human is always told after three looks",
		"budget: {per_class: {monitor_blind: 1/1h}}": "a human is always told after three looks",
		"budget: {kill_grace: 2m}":                   "write at most 1m",
		`escalate: {quiet: ["08:00-08:00"]}`:         "write the whole day like 00:00-24:00",
		`escalate: {quiet: "00:00-00:00"}`:           "write the whole day like 00:00-24:00",
	} {
		file("state/outlive/agents/registry.yaml", "version: 2\nagents:\n  shop: {kind: command, path: "+now.dir+", "+keys+"}\n")
		was.run(t, 0, "agent", "list", "--home", now.path("state/outlive/agents"))
		want(t, now.run(t, 0, "agent", "list"), "^shop +command ", "^registry: .*"+regexp.QuoteMeta(hint))
	}
	for text, hint := range map[string]string{
		"servers: {shop: {url: \"http://127.0.0.1:9/mcp\", allow: []}}":                     `for none write deny: "*"`,
		"servers: {shop: {url: \"http://127.0.0.1:9/mcp\", allow: null}}":                   `for none write deny: "*"`,
		"servers: {shop: {url: \"http://127.0.0.1:9/mcp\"}}\nlimits: {session_idle: 0s}":    "means the default",
		"servers: {shop: {url: \"http://127.0.0.1:9/mcp\"}}\nlimits: {session_release: 0s}": "means the default",
		"mcpServers: {shop: {url: \"http://127.0.0.1:9/mcp\"}}\nlisten: \"127.0.0.1:0\"":    "listen has no effect beside mcpServers",
	} {
		out, err := now.command("gateway", "--config", file("outlive.yaml", text+"\n")).CombinedOutput() // its client has left
		if want(t, string(out), "Gateway starting", regexp.QuoteMeta(hint)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	refused("a client's servers with tokens of our own", []string{"gateway", "--config", file("outlive.yaml", "mcpServers: {shop: {url: \"http://127.0.0.1:9/mcp\"}}\nauth: {bearer: x}\n")}, "mcpServers")

	flags := func(j *joined, verb []string) (all []string) {
		_, list, _ := strings.Cut(j.run(t, 0, append(slices.Clone(verb), "--help")...), "Flags:\n")
		for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(list, -1) {
			all = append(all, m[1])
		}
		if len(all) == 0 {
			t.Fatalf("outlive %s --help of %s names no flags", strings.Join(verb, " "), j.name)
		}
		return all
	}
	instead := map[string]string{
		"gateway": "--peer-listen ADDRESS --peer-secret-file FILE", "fleet hub": "outlive fleet join --nats", "tap": "outlive tap NAME --json --bodies",
		"top": "outlive watch goes on", "wrap": "outlive gateway -c COPY", "monitor": "outlive agent explain NAME",
		"agent attach": `Ctrl-\ leaves the terminal`, "login": "paste the address at which it ends",
	}
	for _, line := range []string{
		"run", "gateway", "login", "wrap", "unwrap", "status", "logs", "restart", "reload", "upgrade", "wait", "watch", "tap", "top", "metrics", "doctor", "dashboard",
		"demo", "version", "monitor", "heartbeat", "ack", "hook", "hooks install", "hooks remove", "hooks status", "service install", "service remove",
		"agent add", "agent attach", "agent budget-reset", "agent explain", "agent list", "agent logs", "agent pause", "agent remove", "agent report", "agent restart",
		"agent resume", "agent run", "agent say", "agent scan", "agent show", "agent start", "agent stop", "agent unpause",
		"fleet hub", "fleet join", "fleet leave", "fleet status", "fleet token list", "fleet token make", "fleet token revoke",
	} {
		verb := strings.Fields(line)
		have := flags(now, verb)
		for _, name := range flags(was, verb) {
			switch {
			case slices.Contains(have, name):
			case instead[line] == "":
				t.Errorf("outlive %s --%s is gone", line, name)
			default:
				refused("outlive "+line+" --"+name, append(slices.Clone(verb), "--"+name, "x"), instead[line])
			}
		}
	}
	refused("several hubs", []string{"fleet", "join", "one.example,two.example", "--token", "x"}, instead["fleet hub"])
}
