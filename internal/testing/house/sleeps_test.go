package house

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sleepsList says which tests may sleep, how often and why: a line has path, function, number of sleeps and reason.
const sleepsList = "internal/testing/house/sleeps.txt"

// sleepsAt are the sleeps of one function, those in a bubble of synctest left out.
type sleepsAt struct{ path, function string }

// Tests wait for events. Whoever sleeps says why in sleeps.txt; time in a bubble of synctest costs nothing and is exact.
func TestSleeps(t *testing.T) {
	text, err := os.ReadFile(sleepsList)
	if err != nil {
		t.Fatal(err)
	}
	allowed, faults := readSleeps(string(text))
	for _, f := range append(faults, checkSleeps(loadTests(t), allowed)...) {
		t.Error(f)
	}
}

// readSleeps reads the list. Empty lines and comments stand between its lines.
func readSleeps(text string) (allowed map[sleepsAt]int, faults []finding) {
	allowed = map[sleepsAt]int{}
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		n := 0
		if len(words) > 3 {
			n, _ = strconv.Atoi(words[2]) // what is no number is refused as 0 is
		}
		switch {
		case n < 1:
			faults = append(faults, finding(fmt.Sprintf("%s:%d: want path, function, number of sleeps and reason", sleepsList, i+1)))
		case allowed[sleepsAt{words[0], words[1]}] > 0:
			faults = append(faults, finding(fmt.Sprintf("%s:%d: %s of %s is there twice", sleepsList, i+1, words[1], words[0])))
		default:
			allowed[sleepsAt{words[0], words[1]}] = n
		}
	}
	return allowed, faults
}

// checkSleeps compares what sleeps with what may.
func checkSleeps(tests []*source, allowed map[sleepsAt]int) []finding {
	bubbles := bubbleFunctions(tests)
	var found []finding
	met := map[sleepsAt]bool{}
	for _, s := range tests {
		for _, d := range s.ast.Decls {
			sleeps := sleepsIn(s, d, bubbles[path.Dir(s.path)])
			if len(sleeps) == 0 {
				continue
			}
			at := sleepsAt{s.path, declName(d)}
			met[at] = true
			if n := allowed[at]; n != len(sleeps) {
				found = append(found, s.at(sleeps[0].Pos(), "%s sleeps %d times, %s allows %d: wait for the event (internal/testing/await), use synctest, or give a reason there",
					at.function, len(sleeps), sleepsList, n))
			}
		}
	}
	for at := range allowed {
		if !met[at] {
			found = append(found, finding(fmt.Sprintf("%s: %s of %s does not sleep any more", sleepsList, at.function, at.path)))
		}
	}
	return found
}

// sleepsIn are the sleeps of a declaration: calls of time.Sleep, also where it is handed on, and waiting for nothing but a timer.
func sleepsIn(s *source, d ast.Node, bubbles []string) (sleeps []ast.Node) {
	names, bubble := s.namesOf("time"), s.namesOf("testing/synctest")
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isBubble(n, bubble, bubbles) {
				return false
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && n.Sel.Name == "Sleep" && slices.Contains(names, id.Name) {
				sleeps = append(sleeps, n)
			}
		case *ast.ExprStmt:
			receive, ok := n.X.(*ast.UnaryExpr)
			if !ok {
				return true
			}
			if call, ok := receive.X.(*ast.CallExpr); ok && isCallOf(call, names, "After") {
				sleeps = append(sleeps, n)
			}
		case *ast.CommClause: // in a select, something else may come first
			for _, stmt := range n.Body {
				sleeps = append(sleeps, sleepsIn(s, stmt, bubbles)...)
			}
			return false
		}
		return true
	})
	return sleeps
}

// isBubble reports a call that runs what it is given in a bubble: synctest.Test, or a function of the package that calls it so.
func isBubble(call *ast.CallExpr, synctest, functions []string) bool {
	if isCallOf(call, synctest, "Test") {
		return true
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && slices.Contains(functions, id.Name)
}

func isCallOf(call *ast.CallExpr, packages []string, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains(packages, id.Name)
}

// bubbleFunctions are, for each folder, the functions that call one of their own arguments within synctest.Test and nowhere else.
func bubbleFunctions(tests []*source) map[string][]string {
	functions := map[string][]string{}
	for _, s := range tests {
		synctest := s.namesOf("testing/synctest")
		for _, d := range s.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Body == nil {
				continue
			}
			within, elsewhere := 0, 0
			for name := range funcParameters(fn) {
				in, out := mentions(fn.Body, name, synctest)
				within, elsewhere = within+in, elsewhere+out
			}
			if within > 0 && elsewhere == 0 {
				functions[path.Dir(s.path)] = append(functions[path.Dir(s.path)], fn.Name.Name)
			}
		}
	}
	return functions
}

// funcParameters are the names of the parameters that are functions.
func funcParameters(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	for _, field := range fn.Type.Params.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			for _, name := range field.Names {
				names[name.Name] = true
			}
		}
	}
	return names
}

// mentions counts where a name stands: in the arguments of synctest.Test, and elsewhere.
func mentions(body ast.Node, name string, synctest []string) (in, out int) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isCallOf(n, synctest, "Test") {
				for _, arg := range n.Args {
					some, others := mentions(arg, name, nil)
					in += some + others
				}
				return false
			}
		case *ast.Ident:
			if n.Name == name {
				out++
			}
		}
		return true
	})
	return in, out
}

// declName is a declaration's name: F, T.F for a method, and of a group the first.
func declName(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		return receiver(d) + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return ""
}

func TestSleepRuleFindsWhatItIsFor(t *testing.T) {
	const all = "import (\"testing\"; \"testing/synctest\"; \"time\")\n"
	for _, tc := range []struct {
		name, text, list string
		found            int
	}{
		{"sleeps and hopes", "func TestA(t *testing.T) { time.Sleep(1) }", "", 1},
		{"once for each function", "func TestA(t *testing.T) { time.Sleep(1); time.Sleep(1) }\nfunc (x *X) b() { time.Sleep(1) }", "", 2},
		{"allowed", "func TestA(t *testing.T) { time.Sleep(1) }", "a_test.go TestA 1 a reason", 0},
		{"in a method", "func (x *X[T]) b() { time.Sleep(1) }", "a_test.go X.b 1 a reason", 0},
		{"of a variable", "var wait = func() { time.Sleep(1) }", "a_test.go wait 1 a reason", 0},
		{"more than allowed", "func TestA(t *testing.T) { time.Sleep(1); time.Sleep(1) }", "a_test.go TestA 1 a reason", 1},
		{"fewer than allowed", "func TestA(t *testing.T) { time.Sleep(1) }", "a_test.go TestA 2 a reason", 1},
		{"allowed and gone", "func TestA(t *testing.T) {}", "a_test.go TestA 1 a reason", 1},
		{"no reason", "func TestA(t *testing.T) {}", "a_test.go TestA 1", 1},
		{"no number", "func TestA(t *testing.T) {}", "a_test.go TestA a reason", 1},
		{"twice", "func TestA(t *testing.T) { time.Sleep(1) }", "a_test.go TestA 1 a reason\na_test.go TestA 1 a reason", 1},
		{"comments", "func TestA(t *testing.T) {}", "# nothing\n\n", 0},
		{"by another way", "func TestA(t *testing.T) { <-time.After(1) }", "", 1},
		{"handed on", "func TestA(t *testing.T) { wait := time.Sleep; wait(1) }", "", 1},
		{"a bound", "func TestA(t *testing.T) { select { case <-t.Context().Done(): case <-time.After(1): } }", "", 0},
		{"in a select's branch", "func TestA(t *testing.T) { select { case <-t.Context().Done(): time.Sleep(1) } }", "", 1},
		{"in a bubble", "func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() }) }", "", 0},
		{"beside a bubble", "func TestA(t *testing.T) { time.Sleep(1); synctest.Test(t, func(t *testing.T) {}) }", "", 1},
		{"in a bubble of the package", "func in(t *testing.T, f func()) { synctest.Test(t, func(t *testing.T) { f() }) }\nfunc TestA(t *testing.T) { in(t, func() { time.Sleep(1) }) }", "", 0},
		{"handed to a bubble", "func in(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }\nfunc TestA(t *testing.T) { in(t, func(*testing.T) { time.Sleep(1) }) }", "", 0},
		{"not always in a bubble", "func in(t *testing.T, f func()) { f(); synctest.Test(t, func(t *testing.T) { f() }) }\nfunc TestA(t *testing.T) { in(t, func() { time.Sleep(1) }) }", "", 1},
		{"no bubble", "func in(t *testing.T, f func()) { f() }\nfunc TestA(t *testing.T) { in(t, func() { time.Sleep(1) }) }", "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSource("a_test.go", []byte("package p\n"+all+tc.text))
			if err != nil {
				t.Fatal(err)
			}
			allowed, found := readSleeps(tc.list)
			if found = append(found, checkSleeps([]*source{s}, allowed)...); len(found) != tc.found {
				t.Errorf("%d findings %v, want %d", len(found), found, tc.found)
			}
		})
	}
}
