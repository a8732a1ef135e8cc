package house

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// embedded are the types that types with methods embed by a pointer, and why. Elsewhere a field with a name says whose
// state is used.
var embedded = map[string]string{
	"internal/agents/monitor.Monitor": "a round is the monitor at one look",
	"internal/agents/monitor.setting": "what each gathering of a look reads, and nobody writes",
	"internal/line/backend.core":      "the state of one server, which its parts are the methods of",
	"internal/ops/cli.endpoint":       "control.Source for it: Status and Restart have other forms there",
	"internal/ops/cli.sharedDaemon":   "likewise",
	"internal/protocol/bridge.core":   "the line that is translated, and the ids given out",
	"outlive-fleet.settings":          "where the program has its files, which nobody writes",
}

// written are those of them whose fields are written by the methods of others.
var written = map[string]string{
	"internal/line/backend.core": "each part writes what its comment says; supervise.Machine has the transitions",
}

// structs are the structs of one package.
type structs struct {
	fields   map[string][]string // their own, by struct
	pointers map[string][]string // the types that each embeds by a pointer
	methods  map[string][]method
}

type method struct {
	of   *source
	decl *ast.FuncDecl
}

func structsOf(files []*source) *structs {
	all := &structs{fields: map[string][]string{}, pointers: map[string][]string{}, methods: map[string][]method{}}
	for _, s := range files {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					all.methods[receiver(n)] = append(all.methods[receiver(n)], method{s, n})
				}
			case *ast.TypeSpec:
				if t, ok := n.Type.(*ast.StructType); ok {
					all.declare(n.Name.Name, t)
				}
			}
			return true
		})
	}
	return all
}

func (all *structs) declare(name string, t *ast.StructType) {
	all.fields[name], _ = members(t.Fields)
	for _, f := range t.Fields.List {
		if _, pointer := f.Type.(*ast.StarExpr); pointer && len(f.Names) == 0 {
			all.pointers[name] = append(all.pointers[name], typeName(f.Type))
		}
	}
}

// checkOwners finds types with methods that embed a pointer to a struct of their package. It also finds methods that write fields of
// that struct. Both are given by the name of the struct, with its package.
func checkOwners(tree []*source) (borrowed, overwritten map[string][]finding) {
	packages := map[string][]*source{}
	for _, s := range tree {
		if !s.test && s.wing != support && (s.wing != "" || strings.HasPrefix(s.path, "outlive-")) {
			packages[path.Dir(s.path)] = append(packages[path.Dir(s.path)], s)
		}
	}
	borrowed, overwritten = map[string][]finding{}, map[string][]finding{}
	for dir, files := range packages {
		all := structsOf(files)
		for name, pointers := range all.pointers {
			for _, lender := range pointers {
				methods, owner := all.methods[name], dir+"."+lender
				if _, known := all.fields[lender]; !known || len(methods) == 0 {
					continue
				}
				first := methods[0]
				borrowed[owner] = append(borrowed[owner], first.of.at(first.decl.Pos(), "%s embeds *%s: let it have what is its own, and a named field for the rest", name, lender))
				for _, m := range methods {
					overwritten[owner] = append(overwritten[owner], all.writes(m, name, lender)...)
				}
			}
		}
	}
	return borrowed, overwritten
}

// writes are the places where a method of one struct writes a field of another one that it embeds.
func (all *structs) writes(m method, name, lender string) (found []finding) {
	if m.decl.Body == nil || len(m.decl.Recv.List[0].Names) == 0 {
		return nil
	}
	self := m.decl.Recv.List[0].Names[0].Name
	look := func(to ast.Expr) {
		for {
			index, ok := to.(*ast.IndexExpr)
			if !ok {
				break
			}
			to = index.X
		}
		sel, ok := to.(*ast.SelectorExpr)
		if !ok {
			return
		}
		id, ok := sel.X.(*ast.Ident)
		if field := sel.Sel.Name; ok && id.Name == self && slices.Contains(all.fields[lender], field) && !slices.Contains(all.fields[name], field) {
			found = append(found, m.of.at(to.Pos(), "%s is written by %s, and is of %s: let that have a method for it", field, name, lender))
		}
	}
	ast.Inspect(m.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				look(to)
			}
		case *ast.IncDecStmt:
			look(n.X)
		}
		return true
	})
	return found
}

func TestTypesOwnTheirState(t *testing.T) {
	borrowed, overwritten := checkOwners(loadTree(t))
	for _, rule := range []struct {
		name   string
		found  map[string][]finding
		except map[string]string
	}{{"embedded", borrowed, embedded}, {"written", overwritten, written}} {
		for owner, found := range rule.found {
			if rule.except[owner] == "" {
				for _, f := range found {
					t.Error(f)
				}
			}
		}
		for owner := range rule.except {
			if len(rule.found[owner]) == 0 {
				t.Errorf("nothing is found of %s: take it out of %s", owner, rule.name)
			}
		}
	}
}

func TestOwnersAreFound(t *testing.T) {
	const lender = "type a struct{ n int; list []int }\n"
	for _, tc := range []struct {
		name, text            string
		borrowed, overwritten int
	}{
		{"borrowed", lender + "type b struct{ *a }\nfunc (b) do() {}", 1, 0},
		{"without methods", lender + "type b struct{ *a; m int }", 0, 0},
		{"by value", lender + "type b struct{ a }\nfunc (x *b) do() { x.n = 1 }", 0, 0},
		{"of another package", "import \"sync\"\ntype b struct{ *sync.Mutex }\nfunc (b) do() {}", 0, 0},
		{"named", lender + "type b struct{ a *a }\nfunc (x *b) do() { x.a.n = 1 }", 0, 0},
		{"written", lender + "type b struct{ *a; m int }\nfunc (x *b) do() { x.n, x.m = 1, 2; x.n++; x.list[0] = 1 }", 1, 3},
		{"its own of that name", lender + "type b struct{ *a; n int }\nfunc (x *b) do() { x.n = 1 }", 1, 0},
		{"another's", lender + "type b struct{ *a }\nfunc (x *b) do(y *a) { y.n = 1; n := 2; _ = n }", 1, 0},
	} {
		s, err := parseSource("internal/line/proxy/a.go", []byte("package proxy\n"+tc.text))
		if err != nil {
			t.Fatal(err)
		}
		borrowed, overwritten := checkOwners([]*source{s})
		if b, o := len(borrowed["internal/line/proxy.a"]), len(overwritten["internal/line/proxy.a"]); b != tc.borrowed || o != tc.overwritten {
			t.Errorf("%s: %d borrowed, %d overwritten, want %d and %d", tc.name, b, o, tc.borrowed, tc.overwritten)
		}
	}
}
