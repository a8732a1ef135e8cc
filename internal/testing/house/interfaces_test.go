package house

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"testing"
)

// checkInterfaces finds interfaces that fewer than two types implement, doubles in tests included. Only types of its own package can
// implement an interface with a method that is not exported, so names are enough to tell. One of exported methods alone may have
// its types anywhere, and is left to the reviewer.
func checkInterfaces(tree []*source) []finding {
	packages := map[string][]*source{}
	for _, s := range tree {
		pkg := path.Dir(s.path) + " " + s.ast.Name.Name
		packages[pkg] = append(packages[pkg], s)
	}
	var found []finding
	for _, files := range packages {
		known := methodsOf(files)
		for _, s := range files {
			if s.test {
				continue
			}
			ast.Inspect(s.ast, func(n ast.Node) bool {
				if i, ok := n.(*ast.InterfaceType); ok && known.lacksSecond(i) {
					found = append(found, s.at(i.Pos(), "an interface with fewer than two types in its package: name the type itself"))
				}
				return true
			})
		}
	}
	return found
}

// methods are the methods of one package's types, by name.
type methods struct {
	own      map[string][]string // declared methods, by type
	embedded map[string][]string // types that a struct or an interface embeds, by its name
	concrete map[string]bool     // the types that are no interfaces
}

func methodsOf(files []*source) *methods {
	m := &methods{own: map[string][]string{}, embedded: map[string][]string{}, concrete: map[string]bool{}}
	for _, s := range files {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					m.own[receiver(n)] = append(m.own[receiver(n)], n.Name.Name)
				}
			case *ast.TypeSpec:
				m.declare(n)
			}
			return true
		})
	}
	return m
}

func (m *methods) declare(spec *ast.TypeSpec) {
	name := spec.Name.Name
	switch t := spec.Type.(type) {
	case *ast.InterfaceType:
		m.own[name], m.embedded[name] = members(t.Methods)
		return
	case *ast.StructType:
		_, m.embedded[name] = members(t.Fields)
	}
	if !spec.Assign.IsValid() { // an alias is not another type
		m.concrete[name] = true
	}
}

// members are the named fields or methods of a type, and the types that it embeds.
func members(fields *ast.FieldList) (named, embedded []string) {
	for _, f := range fields.List {
		for _, name := range f.Names {
			named = append(named, name.Name)
		}
		if len(f.Names) == 0 {
			embedded = append(embedded, typeName(f.Type))
		}
	}
	return named, embedded
}

// add adds the methods of a type to all, also those of what it embeds. A type may embed itself by way of a pointer.
func (m *methods) add(all map[string]bool, name string, above ...string) {
	if slices.Contains(above, name) {
		return
	}
	for _, method := range m.own[name] {
		all[method] = true
	}
	for _, part := range m.embedded[name] {
		m.add(all, part, append(above, name)...)
	}
}

// lacksSecond reports whether an interface can be implemented in this package alone, by fewer than two of its types.
func (m *methods) lacksSecond(i *ast.InterfaceType) bool {
	wanted := map[string]bool{}
	named, embedded := members(i.Methods)
	for _, method := range named {
		wanted[method] = true
	}
	for _, part := range embedded {
		m.add(wanted, part)
	}
	closed := false
	for method := range wanted {
		closed = closed || !ast.IsExported(method)
	}
	implementing := 0
	for name := range m.concrete {
		has := map[string]bool{}
		m.add(has, name)
		maps.DeleteFunc(has, func(method string, _ bool) bool { return !wanted[method] })
		if len(has) == len(wanted) {
			implementing++
		}
	}
	return closed && implementing < 2
}

// The interfaces that are found, and those that are left alone.
func TestInterfacesWithOneImplementation(t *testing.T) {
	const one = "type doer interface{ do() }\ntype a int\nfunc (*a) do() {}\n"
	for _, tc := range []struct {
		name, text, beside, besideText string
		found                          int
	}{
		{"named", one, "", "", 1},
		{"among the fields", "type t struct{ out interface{ do() } }\ntype a[T any] int\nfunc (a[T]) do() {}", "", "", 1},
		{"by no type", "type doer interface{ do() }", "", "", 1},
		{"by an alias", one + "type b = a", "", "", 1},
		{"partly by another", "type doer interface{ do(); Undo() }\ntype a int\nfunc (a) do() {}\nfunc (a) Undo() {}\ntype b int\nfunc (b) do() {}", "", "", 1},
		{"with what it embeds", one + "type b int\nfunc (b) do() {}\nfunc (b) undo() {}\ntype both interface{ doer; undo() }", "", "", 1},
		{"with a foreign one", "import \"io\"\n" + one + "type b interface{ io.Closer; doer }", "", "", 2},
		{"by two", one + "type b[T any] int\nfunc (b[T]) do() {}", "", "", 0},
		{"by what embeds the first", one + "type b struct{ *a }", "", "", 0},
		{"by a type in a function", one + "func f() { type b struct{ a; n int } }", "", "", 0},
		{"by what embeds itself", one + "type b struct{ *b; doer }", "", "", 0},
		{"of exported methods", "type doer interface{ Do() }\ntype a int\nfunc (a) Do() {}", "", "", 0},
		{"of no methods", "func f[T interface{ ~int | ~string }](x interface{}) {}", "", "", 0},
		{"by a double", one, "internal/line/proxy/b_test.go", "package proxy\ntype b int\nfunc (b) do() {}", 0},
		{"by a type of the outer test", one, "internal/line/proxy/b_test.go", "package proxy_test\ntype b int\nfunc (b) do() {}", 1},
		{"by a type elsewhere", one, "internal/line/backend/b.go", "package proxy\ntype b int\nfunc (b) do() {}", 1},
		{"of a test", "", "internal/line/proxy/b_test.go", "package proxy\n" + one, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{"internal/line/proxy/a.go": "package proxy\n" + tc.text}
			if tc.beside != "" {
				files[tc.beside] = tc.besideText
			}
			var tree []*source
			for name, text := range files {
				s, err := parseSource(name, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				tree = append(tree, s)
			}
			if got := checkInterfaces(tree); len(got) != tc.found {
				t.Errorf("%d findings %v, want %d", len(got), got, tc.found)
			}
		})
	}
}
