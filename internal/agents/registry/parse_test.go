package registry

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, text string) *Registry {
	t.Helper()
	r, err := Parse("registry.yaml", []byte(text), Options{Home: hostpath.Abs("/home/you")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func TestParse(t *testing.T) {
	r := parse(t, hostpath.InText(string(readTestdata(t, "full.yaml")), "/home/you"))
	quiet := []string{"23:00-07:00 critical-only"}
	want := []Agent{
		{
			Name: "shop", Path: hostpath.InText("/home/you/shop", "/home"), Kind: agentcli.Claude,
			Match: Match{CWD: ptr(true), Session: "auto", PIDFile: ".run/pid"},
			Start: Start{
				Cmd:    []string{"npx", "tsx", ".claude/orchestrator/src/index.ts"},
				Resume: []string{"claude", "-p", "--resume", "{session}", "{preamble}"},
				Nudge:  []string{"claude", "queue", "{session}", "{text}"},
				Env:    map[string]string{"PORT": "8080", "QUIET": "yes", "EMPTY": ""},
			},
			Signals: []string{"heartbeat", "process", "transcript"},
			Expect: Expect{Beat: 2 * time.Minute, Stale: 10 * time.Minute, Startup: 3 * time.Minute, ModelSilent: 8 * time.Minute, Tool: 30 * time.Minute,
				Waiting: 2 * time.Minute, Progress: 45 * time.Minute, MaxCostUSD: 20, Done: Done{Exit: ptr(0), Manifest: "complete"}},
			Policy: map[string]recovery.Ladder{"waiting_permission": {"ask_phone"}, "model_silent": {"observe", "interrupt", "resume", "restart"}, "crashed": {"restart"}},
			Budget: Budget{PerClass: map[string]recovery.Budget{"crashed": {Max: 5, Window: time.Hour}, "model_silent": perPhase2},
				Global: recovery.Budget{Max: 1, Window: time.Minute}, KillGrace: 10 * time.Second, StableAfter: 30 * time.Minute},
			Escalate: Escalate{To: []string{"telegram:me"}, AckTimeout: 15 * time.Minute, Repeat: 30 * time.Minute, Next: []string{"page", "ntfy:night"}, Quiet: quiet, Max: 3},
		},
		{
			Name: "docs", Path: hostpath.Abs("/home/you/docs"), Kind: agentcli.Codex, Paused: true,
			Expect:   Expect{Beat: 2 * time.Minute, Stale: 6 * time.Minute, Startup: 3 * time.Minute},
			Budget:   Budget{PerClass: map[string]recovery.Budget{"crashed": {Max: 5, Window: time.Hour}}, Global: recovery.Budget{Max: 1, Window: time.Minute}},
			Escalate: Escalate{To: []string{"telegram:me"}, AckTimeout: 15 * time.Minute, Quiet: quiet},
		},
		{
			Name: "nightly", Kind: Command,
			Expect:   Expect{Beat: 24 * time.Hour, Stale: 25 * time.Hour, Startup: 3 * time.Minute},
			Budget:   Budget{PerClass: map[string]recovery.Budget{"crashed": {Max: 5, Window: time.Hour}}, Global: recovery.Budget{Max: 1, Window: time.Minute}},
			Escalate: Escalate{To: []string{"telegram:me"}, AckTimeout: 15 * time.Minute, Quiet: quiet},
		},
	}
	if diff := cmp.Diff(want, r.Agents, cmpopts.IgnoreFields(Agent{}, "Pos")); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	wantChannels := []Channel{{Name: "telegram:me", Address: "telegram"}, {Name: "ntfy:night", Address: "ntfy://${NTFY_USER}:${NTFY_TOKEN}@ntfy.example/agents"}, {Name: "page", Address: "exec:page-me --now"}}
	if diff := cmp.Diff(wantChannels, r.Channels, cmpopts.IgnoreFields(Channel{}, "Pos")); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
	if r.Version != 2 || r.Zone.String() != "Europe/Berlin" || r.Listen != "127.0.0.1:8377" || r.Deadman.URL != "https://hc.example/ping/${HC_UUID}" || r.Digest.At != "08:00" {
		t.Errorf("got %+v", r)
	}
	if !r.Updated.Equal(time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)) {
		t.Errorf("updated is %v", r.Updated)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %v", r.Warnings)
	}
	if a, ok := r.Agent("docs"); !ok || a.Pos != (fileerror.Pos{Line: 46, Column: 3}) {
		t.Errorf("docs: %v, at %v", ok, a.Pos)
	}
}

// All mistakes are reported together, with their positions.
func TestMistakes(t *testing.T) {
	_, err := Parse("registry.yaml", readTestdata(t, "mistakes.yaml"), Options{Home: hostpath.Abs("/home/you")})
	var problems *fileerror.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	golden(t, "testdata/mistakes.txt", err.Error()+"\n")
}

func TestSyntaxMistakes(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no mapping", "- a", "1:1: a registry begins with its keys"},
		{"open list", "version: 2\nagents: {a: [1, 2\n", "this list is not closed"},
		{"tab", "agents:\n\tshop:", "a tab in the indentation"},
		{"two documents", "version: 2\n---\nversion: 2\n", "second document"},
		{"unknown alias", "agents: *a", "was not defined above"},
		{"contains itself", "agents: &a\n  shop: *a\n", "2:9: this contains itself"},
		{"merge of itself", "defaults: &a\n  <<: *a\n", "2:7: this contains itself"},
		{"too long", "#" + strings.Repeat("x", SizeLimit), "longer than 1 MiB"},
		{"agents and projects", "version: 2\nagents: {}\nprojects: {}\n", "they are the same"},
		{"same key in two spellings", "version: 2\nagents: {a: {kind: acp, path: ~/a, escalate: {ackTimeout: 1m, ack_timeout: 2m}}}", "is given twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("registry.yaml", []byte(tc.text), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Groups that merge groups that merge groups are as small as they are written.
func TestMergesOfMerges(t *testing.T) {
	r := parse(t, mergeBomb()+"agents: {a: {path: ~/a}}\n")
	if a, ok := r.Agent("a"); !ok || a.Kind != ACP {
		t.Errorf("got %+v", a)
	}
}

// mergeBomb asks for 50 to the power of 9 groups.
func mergeBomb() string {
	var b strings.Builder
	b.WriteString("version: 2\nx-0: &g0 {kind: acp}\n")
	for i := range 9 {
		fmt.Fprintf(&b, "x-%d: &g%d {<<: [%s]}\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*g%d, ", i), 50), ", "))
	}
	b.WriteString("defaults: *g9\n")
	return b.String()
}

// What an earlier release took means what it meant then, as far as it meant anything, and a warning says what to write.
func TestOlderValues(t *testing.T) {
	r := parse(t, string(readTestdata(t, "older.yaml")))
	var warned strings.Builder
	for _, w := range r.Warnings {
		fmt.Fprintln(&warned, r.Render(w))
	}
	golden(t, "testdata/older.txt", warned.String())
	want := []Agent{
		{
			Name: "shop", Kind: Command, Policy: map[string]recovery.Ladder{"crashed": {"restart"}},
			Budget:   Budget{PerClass: map[string]recovery.Budget{"crashed": {Max: 3, Window: time.Hour}}, KillGrace: time.Minute},
			Escalate: Escalate{To: []string{"me"}, Quiet: []string{"00:00-00:00", "23:00-07:00 critical-only"}},
		},
		{Name: "night", Kind: Command, Budget: Budget{KillGrace: time.Minute}, Escalate: Escalate{Quiet: []string{"08:00-08:00 critical-only"}}},
	}
	if diff := cmp.Diff(want, r.Agents, cmpopts.IgnoreFields(Agent{}, "Pos")); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if c, ok := r.Channel("me"); !ok || c.Address != "exec:/opt/tell.sh --to me >/dev/null" {
		t.Errorf("channels %v", r.Channels)
	}
	if lines := r.Warned(); len(lines) != len(r.Warnings) || strings.Contains(strings.Join(lines, ""), "\n") {
		t.Errorf("in lines: %q", lines)
	}
}

// Of a text that was good for another release, what is a mistake now counts as not given. It is never more than a warning.
func TestAccepted(t *testing.T) {
	const text = "version: 2\nchannels: {me: telegramm-s3cret}\nagents:\n  shop: {kind: command, start: {cmd: [work]}, policy: {no_such: [restart], crashed: [reboot]}, expect: {tool: soon, stale: 5m}, budgets: {}}\n"
	if _, err := Parse("registry.yaml", []byte(text), Options{}); err == nil {
		t.Error("as a new text it is accepted")
	}
	r, err := Parse("registry.yaml", []byte(text), Options{Accepted: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []Agent{{Name: "shop", Kind: Command, Start: Start{Cmd: []string{"work"}}, Expect: Expect{Stale: 5 * time.Minute}}}
	if diff := cmp.Diff(want, r.Agents, cmpopts.IgnoreFields(Agent{}, "Pos", "Policy")); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if shown := strings.Join(r.Warned(), "\n"); len(r.Warnings) != 5 || strings.Contains(shown, "s3cret") {
		t.Errorf("warned %s", shown)
	}
	if _, err := Parse("registry.yaml", []byte("version: 2\nagents: {shop: ["), Options{Accepted: true}); err == nil {
		t.Error("half a text is accepted")
	}
}

// A ladder that cannot be climbed counts as not declared, in place of what the defaults declare, too, and a warning says why.
func TestLaddersThatCannotBeClimbed(t *testing.T) {
	for value, want := range map[string]string{
		"[]":                            `names no step; name at least "escalate"`,
		"":                              "names no step",
		"[escalate, restart]":           `"restart" comes after "escalate", which must be the last step`,
		"[nudge, escalate, escalate]":   `"escalate" comes after "escalate"`,
		"[nudge, escalate]":             "",
		"restart":                       "",
		"[observe, observe, interrupt]": "",
	} {
		text := "version: 2\ndefaults: {policy: {crashed: [restart]}}\nagents:\n  a:\n    kind: command\n    policy:\n      crashed: " + value + "\n"
		r := parse(t, text)
		warned := strings.Join(r.Warned(), "\n")
		switch got := r.Agents[0].Policy["crashed"]; {
		case want == "" && (len(got) == 0 || len(r.Warnings) > 0):
			t.Errorf("%s: %v, warned %s", value, got, warned)
		case want != "" && (len(got) > 0 || len(r.Warnings) != 1 || !strings.Contains(warned, want) || !strings.Contains(warned, "what is done by default holds")):
			t.Errorf("%s: %v, warned %s, want %s", value, got, warned, want)
		}
	}
}

func TestQuietHoursAndGrace(t *testing.T) {
	for value, want := range map[string]string{
		"escalate: {quiet: [\"24:00-07:00\"]}": "is not a quiet time",
		"escalate: {quiet: [\"00:00-24:00\"]}": "",
		"escalate: {quiet: [\"22:00-00:00\"]}": "",
		"budget: {kill_grace: 1m}":             "",
		"budget: {kill_grace: 5}":              "has no unit",
	} {
		r, err := Parse("registry.yaml", []byte("version: 2\nagents: {a: {kind: command, "+value+"}}\n"), Options{})
		if want == "" && (err != nil || len(r.Warnings) > 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}

// Of thousands of mistakes only the first are listed.
func TestManyMistakes(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 2\nagents:\n")
	for i := 0; text.Len() < 100_000; i++ {
		fmt.Fprintf(&text, "  a%d: {kind: x, path: ~/a}\n", i)
	}
	_, err := Parse("r", []byte(text.String()), Options{})
	if err == nil || strings.Count(err.Error(), "\n") > 3*100+1 || !strings.HasSuffix(err.Error(), " more") {
		t.Errorf("got %.200v", err)
	}
}

// What an agent says of its end counts before what the defaults say, in both directions.
func TestDoneAndDefaults(t *testing.T) {
	for text, want := range map[string]int{
		"version: 2\ndefaults: {expect: {done: {exit: 0}}}\nagents: {a: {kind: command, expect: {done: {exit: never}}}}":       NeverDone,
		"version: 2\ndefaults: {expect: {done: {exit: never}}}\nagents: {a: {kind: command, expect: {done: {exit: 0}}}}":       0,
		"version: 2\ndefaults: {expect: {done: {exit: \"never\"}}}\nagents: {a: {kind: command}}":                              NeverDone,
		"version: 2\nagents: {a: {kind: command, expect: {done: {exit: 255}}}, b: {kind: command, expect: {done: {exit: 1}}}}": 255,
	} {
		if got := parse(t, text).Agents[0].Expect.Done.Exit; got == nil || *got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if got := parse(t, "version: 2\nagents: {a: {kind: command}}").Agents[0].Expect.Done; got != (Done{}) {
		t.Errorf("nothing was said: %+v", got)
	}
}

// A registry of many agents is read in no time: the monitor does so whenever it has changed.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 2\ndefaults: {expect: {beat: 2m, stale: 6m}, budget: {per_class: {crashed: 5/1h}}}\nagents:\n")
	for i := range 200 {
		fmt.Fprintf(&text, "  agent-%d: {path: ~/%d, kind: claude, expect: {tool: 30m}, policy: {crashed: [resume, restart]}}\n", i, i)
	}
	for b.Loop() {
		if r, err := Parse("r", []byte(text.String()), Options{}); err != nil || len(r.Agents) != 200 {
			b.Fatal(err)
		}
	}
}

// A key that nobody knows is a mistake, as in outlive.yaml: what it was meant to say would not be done.
func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string]string{
		"version: 2\nagnts:\n  a: {kind: acp, path: ~/a}\n":                      `registry.yaml:2:1: unknown key "agnts": did you mean "agents"?`,
		"version: 2\nagents:\n  a: {kind: acp, path: ~/a, bugdet: {}}\n":         `registry.yaml:3:29: unknown key "bugdet" in agents.a: did you mean "budget"?`,
		"version: 2\nagents:\n  a: {knd: acp, path: ~/a}\n":                      `registry.yaml:3:7: unknown key "knd" in agents.a: did you mean "kind"?`,
		"version: 2\nagents: {a: {kind: acp, path: ~/a, expect: {stael: 2m}}}\n": `unknown key "stael" in agents.a.expect: did you mean "stale"?`,
		"version: 2\ndefaults: {expct: {}}\n":                                    `unknown key "expct" in defaults: did you mean "expect"?`,
	} {
		if _, err := Parse("registry.yaml", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if r := parse(t, "version: 2\nx-note: hello\nagents: {a: {kind: acp, path: ~/a, x-note: b}}\n"); len(r.Warnings) > 0 {
		t.Errorf("keys for notes: %v", r.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no version", "agents: {}", "no version: write version: 2"},
		{"open to the network", "version: 2\nlisten: :80", "others on the network"},
		{"twins", "version: 2\nagents: {a: {kind: acp, path: ~/a}, b: {kind: acp, path: ~/a}}", "agents a and b have the same path and kind"},
		{"PIV without a path", "projects: {a: {status: idle}}", "is left out"},
		{"no time", "version: 2\nupdated: yesterday", "is not a time"},
		{"starts once", "version: 2\nagents: {a: {kind: claude, path: ~/a, start: {cmd: [claude, -p, --session-id, 0f4c, go]}}}",
			":2:52: agents.a.start.cmd has --session-id, with which it can be started only once: leave it out"},
		{"is resumed once", "version: 2\nagents: {a: {kind: claude, path: ~/a, start: {resume: [claude, --resume, \"{session}\", --fork-session, --session-id=0f4c]}}}",
			"agents.a.start.resume has --session-id, with which"},
		{"is not seen", "version: 2\nagents: {a: {kind: claude, path: ~/a, start: {cmd: [claude, --bg, go]}}}", ":2:52: agents.a.start.cmd starts no session that is seen"},
		{"starts once by the defaults", "version: 2\ndefaults: {start: {cmd: [claude, --session-id, 0f4c]}}\nagents: {a: {kind: claude, path: ~/a}}", ":3:10: agents.a.start.cmd has --session-id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := parse(t, tc.text)
			if len(r.Warnings) != 1 || !strings.Contains(r.Render(r.Warnings[0]), tc.want) {
				t.Errorf("got %v, want %q", r.Warnings, tc.want)
			}
		})
	}
}

// A PIV registry is read in every state in which its writers may leave it.
func TestPIV(t *testing.T) {
	r := parse(t, "projects:\n  my shop:\n    name: Shop\n    path: "+hostpath.InText("/home/you/shop", "/home")+"\n    status: running\n    heartbeat: '2026-11-21T02:00:00.000Z'\n    orchestratorPid: null\nlastUpdated: '2026-11-21T02:00:00.000Z'\n")
	want := []Agent{{Name: "my shop", Path: hostpath.InText("/home/you/shop", "/home"), Kind: PIV, Pos: fileerror.Pos{Line: 2, Column: 3}}}
	if diff := cmp.Diff(want, r.Agents); diff != "" || r.Version != 1 || r.Updated.IsZero() || len(r.Warnings) > 0 {
		t.Errorf("version %d, updated %v, warnings %v, %s", r.Version, r.Updated, r.Warnings, diff)
	}
	// In version 2 PIV's names are as good as ours.
	r = parse(t, "version: 2\nlastUpdated: 2026-11-21T02:00:00Z\nprojects: {a: {path: ~/a, kind: piv, orchestratorPid: 7, currentPhase: null, expect: {modelSilent: 8m}}}")
	if len(r.Agents) != 1 || r.Agents[0].Expect.ModelSilent != 8*time.Minute || len(r.Warnings) > 0 || r.Updated.IsZero() {
		t.Errorf("got %+v", r)
	}
	if r := parse(t, ""); r.Version != 0 || len(r.Agents) > 0 || r.Zone == nil {
		t.Errorf("an empty file is %+v", r)
	}
}

// A channel's address and the deadman's URL may contain a token: mistakes in them are reported without the text.
func TestAddressesAreNotShown(t *testing.T) {
	_, err := Parse("registry.yaml", []byte("version: 2\nchannels:\n  me: s3cret-token\n  you: exec:s3cret ${\ndeadman: s3cret\n"), Options{})
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestExpand(t *testing.T) {
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"USER": "me", "EMPTY": "", "NESTED": "${USER}"}[name]
		return value, ok
	}
	for _, tc := range []struct{ text, want, fault string }{
		{"telegram", "telegram", ""},
		{"ntfy://${USER}@h/${EMPTY}t", "ntfy://me@h/t", ""},
		{"${NESTED}", "${USER}", ""}, // values are not looked into
		{"${A}${B}", "", "fill in ${A}, ${B}: it is not set"},
	} {
		got, err := Expand(tc.text, lookup)
		if got != tc.want || (err != nil) != (tc.fault != "") || err != nil && err.Error() != tc.fault {
			t.Errorf("%s: got %q, %v", tc.text, got, err)
		}
	}
}

// perPhase2 is 2/phase.
var perPhase2 = recovery.Budget{Max: 2, Window: 24 * time.Hour, PerPhase: true}

func TestUses(t *testing.T) {
	if a := (Agent{}); !a.Uses("hooks") {
		t.Error("an agent that names no signals has all")
	}
	if a := (Agent{Signals: []string{"process"}}); a.Uses("hooks") || !a.Uses("process") {
		t.Error("an agent that names signals has these only")
	}
}

// The published schema is the one that the reader's table makes, and says the same as the reader.
func TestSchema(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../../schema/registry.schema.json", string(text))
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	full := string(readTestdata(t, "full.yaml"))
	if err := resolved.Validate(plain(t, full)); err != nil {
		t.Errorf("a good registry: %v", err)
	}
	const never = "agents: {a: {kind: command, expect: {done: {exit: never}}}}"
	if err := resolved.Validate(plain(t, "version: 2\n"+never)); err != nil {
		t.Errorf("%s: %v", never, err)
	}
	for _, bad := range []string{
		"version: 3", "agents: {a b: {}}", "agents: {a: {kind: cladue}}", "agents: {a: {expect: {beat: 2}}}", "agents: {a: {policy: {crashed: [reboot]}}}",
		"agents: {a: {start: {cmd: npm start}}}", "agents: {a: {budget: {global: 5}}}", "digest: {to: [a]}", "channels: {me: nothing}", "expcet: {}",
		"agents: {a: {kind: command, expect: {done: {exit: 256}}}}", "agents: {a: {kind: command, expect: {done: {exit: soon}}}}", "agents: {a: {kind: command, expect: {done: {exit: -1}}}}",
	} {
		if resolved.Validate(plain(t, bad)) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
		if r, err := Parse("r", []byte("version: 2\n"+bad), Options{}); err == nil && len(r.Warnings) == 0 {
			t.Errorf("the reader accepts %s", bad)
		}
	}
}

// plain makes of YAML what encoding/json would.
func plain(t *testing.T, text string) any {
	t.Helper()
	var n yaml.Node
	if err := yaml.Load([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return plainNode(t, n.Content[0])
}

func plainNode(t *testing.T, n *yaml.Node) any {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Tag == "!!null":
		return nil
	case n.Kind == yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = plainNode(t, n.Content[i+1])
		}
		return out
	case n.Kind == yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			out = append(out, plainNode(t, c))
		}
		return out
	case slices.Contains([]string{"!!int", "!!float", "!!bool"}, n.Tag):
		var v any
		if err := json.Unmarshal([]byte(n.Value), &v); err == nil {
			return v
		}
	}
	return n.Value
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"full.yaml", "mistakes.yaml", "older.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("projects: {a: {path: ~/a}}"))
	f.Add([]byte("a: &a\n  <<: [*a, *a]\n"))
	f.Add([]byte(mergeBomb()))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse("r.yaml", text, Options{Home: hostpath.Abs("/home/you")})
		if (r == nil) == (err == nil) {
			t.Fatalf("registry %v, error %v", r, err)
		}
		if again, failed := Parse("r.yaml", text, Options{Home: hostpath.Abs("/home/you"), Accepted: true}); (again == nil) == (failed == nil) || failed != nil && err == nil {
			t.Fatalf("what was accepted before is %v, error %v", again, failed)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\x00\r") {
				t.Fatalf("a message that a terminal obeys: %q", err)
			}
			return
		}
		for _, w := range r.Warnings {
			r.Render(w)
		}
		for _, a := range r.Agents {
			if a.Kind == "" || r.Version == 2 && (a.Path == "" && a.Kind != Command) {
				t.Fatalf("half an agent: %+v", a)
			}
		}
	})
}

func TestDeclares(t *testing.T) {
	for text, want := range map[string]bool{
		"version: 2\nagents: {}\n": true, `{"version": 2, "agents": {"shop": {"kind": "command"}}}`: true, "agents:\n  shop: {kind: command}\n": true,
		"# mine\nversion: '2'\n": true, "version: 2\nagents: [\n": true, "{\n  \"version\": 2,": true,
		"projects: {}\nlastUpdated: ''\n": false, "version: 1\nprojects: {}\n": false, "": false, " ": false, "projects: [\n": false,
	} {
		if got := Declares([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
