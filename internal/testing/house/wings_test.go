package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wings are the folders of internal, with the wings whose rooms may be imported there besides the wing's own. The table
// "Wings" in docs/ARCHITECTURE.md is the only place where they are written down.
func wings() map[string][]string {
	if wingsTable != nil {
		return wingsTable
	}
	text, err := os.ReadFile(filepath.FromSlash("docs/ARCHITECTURE.md"))
	if err != nil {
		panic(err)
	}
	table := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)/` \\| [^|]* \\| ([^|]*) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		table[m[1]] = nil
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[2], -1) {
			table[m[1]] = append(table[m[1]], name[1])
		}
	}
	wingsTable = table
	return table
}

// wingsTable is read once, by one goroutine: the tests of this room are not parallel.
var wingsTable map[string][]string

// support is the wing of test support; only this room of it is also the demo's.
const support, demoServer = "testing", "mcptest"

// checkLayer looks at test files too: a test that needs another wing belongs there.
func checkLayer(s *source) []finding {
	var found []finding
	for p, spec := range s.imports() {
		place, ok := strings.CutPrefix(p, module+"/internal/")
		if !ok {
			continue
		}
		wing, room, _ := strings.Cut(place, "/")
		if why := layerFault(s, wing, room); why != "" {
			found = append(found, s.at(spec.Pos(), "%s", why))
		}
	}
	if _, known := wings()[s.wing]; s.wing != "" && !known {
		found = append(found, s.at(s.ast.Pos(), "there is no wing %s in the table of docs/ARCHITECTURE.md", s.wing))
	}
	return found
}

// layerFault says what is wrong with s importing a room, or nothing.
func layerFault(s *source, wing, room string) string {
	top := strings.Split(s.path, "/")[0]
	switch {
	case top == "bench", top == "packaging", top == "outlive-otel", top == "outlive-fleet", wing == s.wing && wing != support && room != "config":
		return ""
	case wing == support:
		if s.test || s.wing == support && s.room != demoServer || room == demoServer && (s.room == "cli" || top == "cmd") {
			return ""
		}
		return room + " is for tests, and " + demoServer + " for the demo"
	case top == "cmd":
		if room == "cli" {
			return ""
		}
		return "cmd imports cli only, not " + room
	case room == "config" && s.room != "cli" && s.room != "config":
		return s.room + " imports config: cli maps the configuration to each room's Options"
	case !slices.Contains(wings()[s.wing], wing) && wing != s.wing:
		return fmt.Sprintf("%s imports %s: wing %s may not import wing %s", s.room, room, s.wing, wing)
	}
	return ""
}

// A reader finds every room in the table "Rooms", and every row there is a room.
func TestRoomsTable(t *testing.T) {
	text := docs(t)["docs/ARCHITECTURE.md"]
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+/\\w+)` \\| ").FindAllStringSubmatch(text, -1) {
		told[m[1]] = true
		if _, err := os.Stat(filepath.Join("internal", filepath.FromSlash(m[1]), "doc.go")); err != nil {
			t.Errorf("docs/ARCHITECTURE.md has a row for %s: %v", m[1], err)
		}
	}
	rooms, err := filepath.Glob("internal/*/*/doc.go")
	if err != nil || len(rooms) == 0 {
		t.Fatalf("no room found: %v", err)
	}
	for _, path := range rooms {
		if room := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/"); !told[room] {
			t.Errorf("docs/ARCHITECTURE.md has no row for %s", room)
		}
	}
}
