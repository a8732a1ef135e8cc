package house

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// compilers begin the names of functions that read a text and make something of it, in whatever package they are.
var compilers = regexp.MustCompile(`^(?:[Mm]ust|[Cc]ompile|[Pp]arse|[Uu]nmarshal|[Dd]ecode)(?:$|[^a-z])`)

// checkEager finds what every process would compile or read at its start: package-level variables and init functions that
// call a compiler. What stands in a function, such as the one given to sync.OnceValue, is not called there.
func checkEager(s *source) []finding {
	if s.test || s.room == "" {
		return nil
	}
	known := map[string]bool{}
	for p, spec := range s.imports() {
		if spec.Name != nil {
			known[spec.Name.Name] = true
		} else {
			known[path.Base(p)] = true
		}
	}
	var found []finding
	for _, at := range atStart(s) {
		ast.Inspect(at, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.FuncLit); ok {
					found = append(found, checkCalls(s, called.Body, known)...)
				}
				if name := compilerOf(n, known); name != "" {
					found = append(found, s.at(n.Pos(), "%s when the program starts: declare a lazyregexp.New, or use sync.OnceValue", name))
				}
			}
			return true
		})
	}
	return found
}

// checkCalls finds compilers in the body of a function that is called on the spot.
func checkCalls(s *source, body ast.Node, known map[string]bool) []finding {
	var found []finding
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name := compilerOf(call, known); name != "" {
				found = append(found, s.at(call.Pos(), "%s when the program starts: declare a lazyregexp.New, or use sync.OnceValue", name))
			}
		}
		return true
	})
	return found
}

// compilerOf is the name of the compiler that is called, or nothing.
func compilerOf(call *ast.CallExpr, known map[string]bool) string {
	var name, of string
	switch called := call.Fun.(type) {
	case *ast.Ident:
		name = called.Name
	case *ast.SelectorExpr:
		name = called.Sel.Name
		if id, ok := called.X.(*ast.Ident); ok && known[id.Name] {
			of = id.Name + "."
		}
	}
	if !compilers.MatchString(name) {
		return ""
	}
	return of + name
}

// atStart is what runs when the program starts: the values of package-level variables, and the bodies of init functions.
func atStart(s *source) []ast.Node {
	var nodes []ast.Node
	for _, d := range s.ast.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
					for _, value := range v.Values {
						nodes = append(nodes, value)
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" && d.Body != nil {
				nodes = append(nodes, d.Body)
			}
		}
	}
	return nodes
}

// checkPatterns compiles what is given to lazyregexp.New, since the program does so only where the pattern is used.
func checkPatterns(s *source) []finding {
	if s.test {
		return nil
	}
	var found []finding
	ast.Inspect(s.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "New" {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); !ok || id.Name != "lazyregexp" {
			return true
		}
		text, ok := constantText(call.Args[0])
		if !ok {
			found = append(found, s.at(call.Pos(), "lazyregexp.New of something that is not written out in this file, so that nobody knows whether it compiles"))
		} else if _, err := regexp.Compile(text); err != nil {
			found = append(found, s.at(call.Pos(), "%v", err))
		}
		return true
	})
	return found
}

// constantText is the text of an expression that is made of literals and constants of the same file.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return constantText(e.X)
	case *ast.BinaryExpr:
		left, ok := constantText(e.X)
		right, both := constantText(e.Y)
		return left + right, ok && both && e.Op == token.ADD
	case *ast.Ident:
		if e.Obj == nil || e.Obj.Kind != ast.Con {
			return "", false
		}
		spec, ok := e.Obj.Decl.(*ast.ValueSpec)
		if !ok {
			return "", false
		}
		for i, name := range spec.Names {
			if name.Name == e.Name && i < len(spec.Values) {
				return constantText(spec.Values[i])
			}
		}
	}
	return "", false
}

func TestStartRulesFindWhatTheyAreFor(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		check      func(*source) []finding
		found      int
	}{
		{"compiled", "import \"regexp\"\nvar x = regexp.MustCompile(`a`)", checkEager, 1},
		{"in a table", "import \"regexp\"\nvar x = []any{1, regexp.MustCompile(`a`)}", checkEager, 1},
		{"in a group", "import \"regexp\"\nvar (\ny = 1\nx, _ = regexp.Compile(`a`)\n)", checkEager, 1},
		{"template", "import \"text/template\"\nvar x = template.Must(template.New(`a`).Parse(`b`))", checkEager, 2},
		{"init", "import \"encoding/json\"\nfunc init() { _ = json.Unmarshal(nil, nil) }", checkEager, 1},
		{"called on the spot", "import \"net/url\"\nvar x = func() any { u, _ := url.Parse(`a`); return u }()", checkEager, 1},
		{"when asked", "import (\"regexp\"; \"sync\")\nvar x = sync.OnceValue(func() any { return regexp.MustCompile(`a`) })", checkEager, 0},
		{"in a function", "import \"regexp\"\nfunc f() any { return regexp.MustCompile(`a`) }", checkEager, 0},
		{"by a function of the room", "func mustURL(string) any { return nil }\nvar x = mustURL(`a`)", checkEager, 1},
		{"only the beginning", "import \"p\"\nvar x = p.Parser()", checkEager, 0},
		{"good patterns", "import \"lazyregexp\"\nconst c = `a` + \"b\"\nvar x = lazyregexp.New(`(` + c + `)`)", checkPatterns, 0},
		{"no pattern", "import \"lazyregexp\"\nvar x = lazyregexp.New(`(`)", checkPatterns, 1},
		{"unknown pattern", "import \"lazyregexp\"\nfunc f(s string) { lazyregexp.New(s) }", checkPatterns, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSource("internal/line/proxy/a.go", []byte("package proxy\n"+strings.TrimSpace(tc.text)))
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.check(s); len(got) != tc.found {
				t.Errorf("%d findings %v, want %d", len(got), got, tc.found)
			}
		})
	}
}
