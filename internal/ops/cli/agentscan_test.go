package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
)

// What an agent CLI has started of its own kind is the same agent; what another kind has started is another.
func TestOutermost(t *testing.T) {
	var all []process.Process
	for _, at := range [][2]int{{10, 1}, {11, 10}, {12, 11}, {20, 12}, {30, 31}, {31, 30}} { // 30 and 31: a table with a circle
		all = append(all, process.Process{Identity: process.Identity{PID: at[0]}, Parent: at[1]})
	}
	kinds := map[int]agentcli.Kind{10: agentcli.Claude, 12: agentcli.Claude, 20: agentcli.Codex, 30: agentcli.Gemini}
	var got []int
	for _, e := range outermost(all, kinds) {
		got = append(got, e.PID)
	}
	if d := cmp.Diff([]int{10, 20, 30}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A process is taken for the agent of the deepest directory that is declared for its kind.
func TestDeclaredAs(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	no := false
	r := &registry.Registry{Agents: []registry.Agent{
		{Name: "all", Kind: agentcli.Claude, Path: root}, {Name: "shop", Kind: agentcli.Claude, Path: at("shop")},
		{Name: "shop-codex", Kind: agentcli.Codex, Path: at("shop")},
		{Name: "apart", Kind: agentcli.Claude, Path: at("apart"), Match: registry.Match{CWD: &no}},
	}}
	for p, want := range map[agentcli.Process]string{
		{Kind: agentcli.Claude, Dir: at("shop")}:         "shop",
		{Kind: agentcli.Claude, Dir: at("shop/cart")}:    "shop",
		{Kind: agentcli.Claude, Dir: at("shopping")}:     "all",
		{Kind: agentcli.Claude, Dir: at("apart")}:        "all",
		{Kind: agentcli.Codex, Dir: at("shop")}:          "shop-codex",
		{Kind: agentcli.Codex, Dir: at("..shop")}:        "",
		{Kind: agentcli.Claude, Dir: filepath.Dir(root)}: "",
		{Kind: agentcli.Claude}:                          "",
	} {
		if got := declaredAs(r, p); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

// Names are those of the directories, made fit for files, and nobody's twice.
func TestAddScannedNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.yaml")
	var names []string
	_, err := registry.Edit(path, registry.Options{}, time.Now(), func(d *registry.Document) error {
		names = nil
		for _, s := range []scanned{
			{Kind: "claude", Dir: "/src/shop"}, {Kind: "codex", Dir: "/src/shop"}, {Kind: "codex", Dir: "/old/shop"},
			{Kind: "codex", Dir: "/older/shop"}, {Kind: "claude", Dir: "/src/Grüße 2"}, {Kind: "claude", Dir: "/src/日本"},
			{Kind: "claude", Dir: "/src/nul"},
		} {
			s.Dir = hostpath.Abs(s.Dir)
			name, err := addUnique(d, &s)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"shop", "shop-codex", "shop-codex-2", "shop-codex-3", "Gr-e-2", "agent", "agent-claude"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The youngest sign counts, and what a source does not say does not.
func TestLastSign(t *testing.T) {
	minutes := func(n int) diagnose.Span { return diagnose.Span(time.Duration(n) * time.Minute) }
	for name, test := range map[string]struct {
		e    diagnose.Evidence
		want string
	}{
		"nothing":            {diagnose.Evidence{}, "-"},
		"a beat":             {diagnose.Evidence{Beat: diagnose.Beat{Has: true, Age: minutes(3)}}, "3m ago (heartbeat)"},
		"a beat just now":    {diagnose.Evidence{Beat: diagnose.Beat{Has: true}, Output: diagnose.Output{Known: true, Age: minutes(1)}}, "0s ago (heartbeat)"},
		"one of the future":  {diagnose.Evidence{Beat: diagnose.Beat{Has: true, Age: -minutes(3)}}, "-"},
		"a younger session":  {diagnose.Evidence{Beat: diagnose.Beat{Has: true, Age: minutes(90)}, Sessions: []diagnose.Session{{LastAge: minutes(80)}}}, "1h20m ago (session)"},
		"a silent session":   {diagnose.Evidence{Sessions: []diagnose.Session{{}}}, "-"},
		"output of days ago": {diagnose.Evidence{Output: diagnose.Output{Known: true, Age: minutes(26 * 60)}}, "1d2h ago (output)"},
	} {
		if got := signText(test.e); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
