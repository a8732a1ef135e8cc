package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// verbRooms is how many rooms of other wings the file of a verb imports at most. Flags become Options, one call does it, and its
// result is printed. Rooms of record and files are words and texts, and do not count.
const verbRooms = 3

// wideVerbs are the files that import more, and why. What one of them does more than a verb belongs in a room.
var wideVerbs = map[string]string{
	"internal/ops/cli/agentlist.go":     "the rows of agents, until they are a room of view",
	"internal/ops/cli/agentscan.go":     "finds agent CLIs by itself, where no monitor looks",
	"internal/ops/cli/agentshow.go":     "the lines about one agent, until they are a room of view",
	"internal/ops/cli/dashboard.go":     "joins a collector, the home of the agents, other machines and the page",
	"internal/ops/cli/fleet.go":         "the member here as the monitor, the collector and the verbs want it",
	"internal/ops/cli/gateway.go":       "starts the endpoint, until that is a room of gateway",
	"internal/ops/cli/heartbeat.go":     "writes a file, or pings, for an agent that it finds by its process",
	"internal/ops/cli/sharingdaemon.go": "the daemon itself, until that is in gateway/sharing",
	"internal/ops/cli/status.go":        "prints a status, whose parts are of gateway, backend, control and overview",
	"internal/ops/cli/top.go":           "joins a collector, the home of the agents, other machines and the screen",
	"internal/ops/cli/wait.go":          "waits by a status, likewise",
}

// roomsOfVerb are the rooms that the file of a verb imports, and that count.
func roomsOfVerb(s *source) (rooms []string) {
	if s.test || s.room != "cli" || !makesCommand(s) {
		return nil
	}
	for p := range s.imports() {
		place, ours := strings.CutPrefix(p, module+"/internal/")
		wing, _, _ := strings.Cut(place, "/")
		if ours && !slices.Contains([]string{s.wing, "record", "files"}, wing) {
			rooms = append(rooms, place)
		}
	}
	slices.Sort(rooms)
	return rooms
}

// makesCommand reports whether a file makes a command of cobra.
func makesCommand(s *source) (makes bool) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if sel, ok := lit.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Command" {
				of, ok := sel.X.(*ast.Ident)
				makes = makes || ok && of.Name == "cobra"
			}
		}
		return true
	})
	return makes
}

func TestVerbsAreThin(t *testing.T) {
	wide := map[string]bool{}
	for _, s := range loadTree(t) {
		rooms := roomsOfVerb(s)
		if wide[s.path] = len(rooms) > verbRooms; wide[s.path] && wideVerbs[s.path] == "" {
			t.Error(s.at(s.ast.Pos(), "a verb that imports %d rooms (%s), at most %d: what it does belongs in one of them", len(rooms), strings.Join(rooms, ", "), verbRooms))
		}
	}
	for file := range wideVerbs {
		if !wide[file] {
			t.Errorf("%s is thin: take it out of wideVerbs", file)
		}
	}
}

func TestRoomsOfVerbs(t *testing.T) {
	imports := func(rooms ...string) string {
		text := "package cli\nimport \"github.com/spf13/cobra\"\n"
		for _, room := range rooms {
			text += "import _ \"" + module + "/internal/" + room + "\"\n"
		}
		return text
	}
	for _, tc := range []struct {
		name, path, text string
		rooms            int
	}{
		{"verb", "internal/ops/cli/a.go", imports("view/control", "agents/monitor") + "var c = &cobra.Command{}", 2},
		{"words and texts", "internal/ops/cli/a.go", imports("record/logline", "files/secret", "ops/clients") + "var c = &cobra.Command{}", 0},
		{"no verb", "internal/ops/cli/a.go", imports("view/control") + "func f(*cobra.Command) {}", 0},
		{"its test", "internal/ops/cli/a_test.go", imports("view/control") + "var c = &cobra.Command{}", 0},
		{"elsewhere", "internal/view/top/a.go", strings.Replace(imports("view/control"), "package cli", "package top", 1) + "var c = &cobra.Command{}", 0},
	} {
		s, err := parseSource(tc.path, []byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := roomsOfVerb(s); len(got) != tc.rooms {
			t.Errorf("%s: rooms %v, want %d", tc.name, got, tc.rooms)
		}
	}
}
