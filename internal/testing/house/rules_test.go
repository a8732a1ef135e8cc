package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checkExported wants a comment at every exported function, method of an exported type, type, constant and
// variable; a group's comment counts for the group.
func checkExported(s *source) []finding {
	if s.test || s.room == "" {
		return nil
	}
	var found []finding
	for _, d := range s.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				found = append(found, s.at(d.Pos(), "%s has no doc comment", d.Name.Name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				found = append(found, checkSpec(s, d, spec)...)
			}
		}
	}
	return found
}

func exportedReceiver(d *ast.FuncDecl) bool { return d.Recv == nil || ast.IsExported(receiver(d)) }

// receiver names the type that a method belongs to.
func receiver(d *ast.FuncDecl) string { return typeName(d.Recv.List[0].Type) }

// typeName is the name of a type of the package, also of a pointer to it and with parameters; "" for any other.
func typeName(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func checkSpec(s *source, d *ast.GenDecl, spec ast.Spec) []finding {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && spec.Doc == nil && d.Doc == nil {
			return []finding{s.at(spec.Pos(), "%s has no doc comment", spec.Name.Name)}
		}
	case *ast.ValueSpec:
		if spec.Doc != nil || spec.Comment != nil || d.Doc != nil {
			return nil
		}
		for _, name := range spec.Names {
			if name.IsExported() {
				return []finding{s.at(spec.Pos(), "%s has no doc comment", name.Name)}
			}
		}
	}
	return nil
}

func checkGOOS(s *source) []finding {
	if s.test || s.forOneOS() || s.room == "" {
		return nil
	}
	return usesOf(s, "runtime", []string{"GOOS", "GOARCH"}, "put what differs into a file per system, such as tree_linux.go")
}

func checkPrint(s *source) []finding {
	if s.test || s.room == "cli" || s.room == "" {
		return nil
	}
	return usesOf(s, "fmt", []string{"Print", "Printf", "Println"}, "write to what you were given")
}

// checkExit lets test support end the processes it is.
func checkExit(s *source) []finding {
	if s.test || s.room == "" || s.wing == support {
		return nil
	}
	found := usesOf(s, "os", []string{"Exit"}, "return the error")
	return append(found, usesOf(s, "log", []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"}, "return the error")...)
}

func usesOf(s *source, pkg string, names []string, advice string) []finding {
	var found []finding
	s.uses(func(p, name string, pos token.Pos) {
		if p == pkg && slices.Contains(names, name) {
			found = append(found, s.at(pos, "%s.%s: %s", pkg, name, advice))
		}
	})
	return found
}

// The words are taken apart so that this file does not hold them.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b|(?i)not (yet )?implem` + `ented`)

func checkUnfinished(s *source) []finding {
	var found []finding
	for _, group := range s.ast.Comments {
		for _, c := range group.List {
			if m := unfinished.FindString(c.Text); m != "" {
				found = append(found, s.at(c.Pos(), "%s: finish it or leave it out", m))
			}
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && !s.test && lit.Kind == token.STRING && unfinished.MatchString(lit.Value) {
			found = append(found, s.at(lit.Pos(), "%s: finish it or leave it out", lit.Value))
		}
		return true
	})
	return found
}

// atTheEdge are the rooms that may know flags and the environment, besides test support: they hand both on as Options.
var atTheEdge = []string{"cli", "config"}

// checkEnvironment lets os.Environ pass: handing the whole environment to a child is not reading a setting from it.
func checkEnvironment(s *source) []finding {
	if s.test || s.room == "" || s.wing == support || slices.Contains(atTheEdge, s.room) {
		return nil
	}
	var found []finding
	for p, spec := range s.imports() {
		if p == "flag" || strings.HasPrefix(p, "github.com/spf13/") {
			found = append(found, s.at(spec.Pos(), "imports %s: take Options", p))
		}
	}
	return append(found, usesOf(s, "os", []string{"Getenv", "LookupEnv", "ExpandEnv"}, "take it in Options")...)
}

func checkTesting(s *source) []finding {
	if s.test || s.wing == support {
		return nil
	}
	var found []finding
	for p, spec := range s.imports() {
		if p == "testing" || strings.HasPrefix(p, "testing/") {
			found = append(found, s.at(spec.Pos(), "imports %s outside a test", p))
		}
	}
	return found
}

// Each rule finds what it is for, and leaves the like alone.
func TestRulesFindWhatTheyAreFor(t *testing.T) {
	for _, tc := range []struct {
		name, path, text string
		check            func(*source) []finding
		found            int
	}{
		{"another wing", "internal/keep/child/a.go", "package child\nimport _ \"" + module + "/internal/line/proxy\"", checkLayer, 1},
		{"a wing of its row", "internal/line/proxy/a.go", "package proxy\nimport _ \"" + module + "/internal/keep/child\"", checkLayer, 0},
		{"its own wing", "internal/line/proxy/a.go", "package proxy\nimport _ \"" + module + "/internal/line/lineloop\"", checkLayer, 0},
		{"files knows nobody", "internal/files/fileerror/a.go", "package problem\nimport _ \"" + module + "/internal/record/event\"", checkLayer, 1},
		{"support in a test", "internal/line/proxy/a_test.go", "package proxy\nimport _ \"" + module + "/internal/testing/mcptest\"", checkLayer, 0},
		{"support in a room", "internal/line/proxy/a.go", "package proxy\nimport _ \"" + module + "/internal/testing/mcptest\"", checkLayer, 1},
		{"the demo's support", "internal/ops/cli/a.go", "package cli\nimport _ \"" + module + "/internal/testing/mcptest\"", checkLayer, 0},
		{"not the demo's", "internal/ops/cli/a.go", "package cli\nimport _ \"" + module + "/internal/testing/agenttest\"", checkLayer, 1},
		{"what support may know", "internal/testing/mcptest/a.go", "package mcptest\nimport _ \"" + module + "/internal/protocol/jsonrpc\"", checkLayer, 0},
		{"support that knows rooms", "internal/testing/agenttest/a.go", "package agenttest\nimport _ \"" + module + "/internal/keep/child\"", checkLayer, 1},
		{"cmd past cli", "cmd/outlive/main.go", "package main\nimport _ \"" + module + "/internal/line/proxy\"", checkLayer, 1},
		{"config in its own wing", "internal/gateway/gateway/a.go", "package gateway\nimport _ \"" + module + "/internal/gateway/config\"", checkLayer, 1},
		{"a wing without a row", "internal/attic/old/a.go", "package old", checkLayer, 1},
		{"bag", "internal/line/helpers/a.go", "package helpers", checkBag, 2},
		{"nested", "internal/line/proxy/deep/a.go", "package deep", checkFlat, 1},
		{"exported", "internal/line/proxy/a.go", "package p\nfunc F() {}\ntype T int\nfunc (T) M() {}\ntype t int\nfunc (t) M() {}\nconst C = 1", checkExported, 4},
		{"documented", "internal/line/proxy/a.go", "package p\n// F is.\nfunc F() {}\n// All.\nconst (\nA = 1\nB = 2\n)", checkExported, 0},
		{"GOOS", "internal/line/proxy/a.go", "package p\nimport \"runtime\"\nvar x = runtime.GOOS", checkGOOS, 1},
		{"GOOS by suffix", "internal/line/proxy/a_linux.go", "package p\nimport \"runtime\"\nvar x = runtime.GOOS", checkGOOS, 0},
		{"print", "internal/line/proxy/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }", checkPrint, 1},
		{"print in cli", "internal/ops/cli/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println() }", checkPrint, 0},
		{"exit", "internal/ops/cli/a.go", "package p\nimport (\"log\"; \"os\")\nfunc f() { os.Exit(1); log.Fatal() }", checkExit, 2},
		{"unfinished", "internal/line/proxy/a.go", "package p\n// TO" + "DO later\nvar x = \"not implem" + "ented\"", checkUnfinished, 2},
		{"environment", "internal/line/proxy/a.go", "package p\nimport (\"flag\"; \"os\")\nvar x = os.Getenv(flag.Arg(0))", checkEnvironment, 2},
		{"testing", "internal/line/proxy/a.go", "package p\nimport _ \"testing/synctest\"", checkTesting, 1},
		{"doc", "internal/line/proxy/doc.go", "// Package proxy starts no goroutine.\npackage proxy", checkDocOf("proxy"), 0},
		{"silent doc", "internal/line/proxy/doc.go", "// Package proxy is.\npackage proxy", checkDocOf("proxy"), 1},
		{"no doc", "internal/line/proxy/a.go", "package proxy", checkDocOf("proxy"), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := parseSource(tc.path, []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.check(s); len(got) != tc.found {
				t.Errorf("%d findings %v, want %d", len(got), got, tc.found)
			}
		})
	}
}

func checkDocOf(room string) func(*source) []finding {
	return func(s *source) []finding { return checkDoc(room, []*source{s}) }
}
