package house

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// Tests draw from a source whose seed is fixed, and make no seed and no name of the time.
func TestChance(t *testing.T) {
	tests := loadTests(t)
	for _, s := range tests {
		for _, f := range slices.Concat(checkDraws(s), checkClockSeeds(s)) {
			t.Error(f)
		}
	}
	for _, f := range checkRapidSeeds(tests) {
		t.Error(f)
	}
}

// sourced are the names of math/rand and math/rand/v2 that draw nothing: types, and what makes a source of a seed.
var sourced = []string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf", "New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf"}

// checkDraws finds what is drawn from the source that all share: its seed is another one in each run.
func checkDraws(s *source) []finding {
	var found []finding
	for _, name := range s.namesOf("math/rand", "math/rand/v2") {
		s.selectors(name, func(sel *ast.SelectorExpr) {
			if !slices.Contains(sourced, sel.Sel.Name) {
				found = append(found, s.at(sel.Pos(), "%s.%s draws what no run draws again: use tier.Rand(t), in e2e seeded(t, part)", name, sel.Sel.Name))
			}
		})
	}
	return found
}

// checkClockSeeds finds a time that becomes a seed or a name. In nanoseconds or microseconds it is taken to, whatever is done
// with it. Seconds and milliseconds are also what files and messages say, so there only what looks like a seed or a name counts.
func checkClockSeeds(s *source) []finding {
	var found []finding
	for _, name := range s.namesOf("time") {
		var above []ast.Node
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			if unit := readClock(n, name); strings.HasSuffix(unit, "Nano") || strings.HasSuffix(unit, "Micro") || unit != "" && seedOrName(above) {
				found = append(found, s.at(n.Pos(), "a seed or a name of the clock: use tier.Rand(t) for what is drawn, a counter or crypto/rand.Text for a name"))
			}
			above = append(above, n)
			return true
		})
	}
	return found
}

// readClock is the method, Unix or one of its kin, by which an expression reads the time now, or nothing.
func readClock(n ast.Node, pkg string) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Nanosecond"}, sel.Sel.Name) {
		return ""
	}
	for at := sel.X; ; { // time.Now().UTC().UnixNano() too
		call, ok := at.(*ast.CallExpr)
		if !ok {
			return ""
		}
		inner, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		if id, ok := inner.X.(*ast.Ident); ok && id.Name == pkg && inner.Sel.Name == "Now" {
			return strings.Replace(sel.Sel.Name, "Nanosecond", "UnixNano", 1)
		}
		at = inner.X
	}
}

// seedOrName reports whether one of the nodes around an expression makes a seed or a text of it.
func seedOrName(above []ast.Node) bool {
	return slices.ContainsFunc(above, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op == token.REM
		case *ast.AssignStmt:
			return slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return ok && named(id) })
		case *ast.ValueSpec:
			return slices.ContainsFunc(n.Names, named)
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			id, ok := sel.X.(*ast.Ident)
			return ok && (id.Name == "rand" || id.Name == "strconv" || id.Name == "fmt" && sel.Sel.Name == "Sprint" || id.Name == "filepath")
		}
		return false
	})
}

func named(id *ast.Ident) bool {
	return slices.ContainsFunc([]string{"seed", "name", "token", "unique"}, func(w string) bool { return strings.Contains(strings.ToLower(id.Name), w) })
}

const rapid, tierRoom = "pgregory.net/rapid", module + "/internal/testing/tier"

// checkRapidSeeds wants the room that fixes rapid's seed in each test binary with rapid: in the file itself, or in one that is
// compiled wherever it is.
func checkRapidSeeds(tests []*source) []finding {
	fixed := map[string]bool{}
	for _, s := range tests {
		if s.imports()[tierRoom] != nil && !s.constrained() {
			fixed[path.Dir(s.path)] = true
		}
	}
	var found []finding
	for _, s := range tests {
		if spec := s.imports()[rapid]; spec != nil && s.imports()[tierRoom] == nil && !fixed[path.Dir(s.path)] {
			found = append(found, s.at(spec.Pos(), "rapid takes its seed from the clock: import _ %q", tierRoom))
		}
	}
	return found
}

func checkRapidSeedOf(s *source) []finding { return checkRapidSeeds([]*source{s}) }

func TestChanceRulesFindWhatTheyAreFor(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		check      func(*source) []finding
		found      int
	}{
		{"a draw", "import \"math/rand/v2\"\nvar x = rand.IntN(3)", checkDraws, 1},
		{"of any type", "import \"math/rand/v2\"\nvar x = rand.N[int64](3)", checkDraws, 1},
		{"the older package", "import \"math/rand\"\nvar x = rand.Intn(3)", checkDraws, 1},
		{"under another name", "import chance \"math/rand/v2\"\nvar x = chance.Float64()", checkDraws, 1},
		{"handed on", "import \"math/rand/v2\"\nvar draw = rand.Float64", checkDraws, 1},
		{"a source", "import \"math/rand/v2\"\nvar r = rand.New(rand.NewPCG(1, 2))\nvar x = r.IntN(3)", checkDraws, 0},
		{"one that is handed in", "import \"math/rand/v2\"\nfunc f(rand *rand.Rand) int { return rand.IntN(3) }", checkDraws, 0},
		{"the other rand", "import \"crypto/rand\"\nvar name = rand.Text()", checkDraws, 0},
		{"nanoseconds", "import (\"fmt\"; \"time\")\nvar x = fmt.Sprintf(\"x%d\", time.Now().UnixNano())", checkClockSeeds, 1},
		{"part of a second", "import \"time\"\nvar x = time.Now().UTC().Nanosecond()", checkClockSeeds, 1},
		{"seconds as a seed", "import (\"math/rand/v2\"; \"time\")\nvar r = rand.New(rand.NewPCG(uint64(time.Now().Unix()), 1))", checkClockSeeds, 1},
		{"a seed for later", "import \"time\"\nfunc f() { seed := time.Now().Unix(); _ = seed }", checkClockSeeds, 1},
		{"a number of some", "import \"time\"\nvar x = time.Now().UnixMilli() % 1000", checkClockSeeds, 1},
		{"a name", "import (\"fmt\"; \"time\")\nvar x = fmt.Sprint(\"server\", time.Now().Unix())", checkClockSeeds, 1},
		{"a time in a message", "import (\"fmt\"; \"time\")\nvar x = fmt.Sprintf(`{\"at\":%d}`, time.Now().UnixMilli())", checkClockSeeds, 0},
		{"a time of a file", "import \"time\"\nvar at = time.Now().Unix()", checkClockSeeds, 0},
		{"a fixed time", "import \"time\"\nvar at time.Time\nvar x = at.UnixNano()", checkClockSeeds, 0},
		{"rapid", "import _ \"" + rapid + "\"", checkRapidSeedOf, 1},
		{"rapid with its seed", "import (_ \"" + rapid + "\"; _ \"" + tierRoom + "\")", checkRapidSeedOf, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSource("internal/line/proxy/a_test.go", []byte("package proxy\n"+tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.check(s); len(got) != tc.found {
				t.Errorf("%d findings %v, want %d", len(got), got, tc.found)
			}
		})
	}
}

// A seed that one file fixes counts for its package, unless that file is for one system or one tag.
func TestRapidSeedOfPackage(t *testing.T) {
	for file, want := range map[string]int{
		"internal/line/proxy/b_test.go": 0, "internal/line/proxy/b_linux_test.go": 1, "internal/line/backend/b_test.go": 1,
	} {
		uses, err := parseSource("internal/line/proxy/a_test.go", []byte("package proxy\nimport _ \""+rapid+"\""))
		if err != nil {
			t.Fatal(err)
		}
		fixes, err := parseSource(file, []byte("package proxy\nimport _ \""+tierRoom+"\""))
		if err != nil {
			t.Fatal(err)
		}
		if got := checkRapidSeeds([]*source{uses, fixes}); len(got) != want {
			t.Errorf("with %s: %d findings %v, want %d", file, len(got), got, want)
		}
	}
}
