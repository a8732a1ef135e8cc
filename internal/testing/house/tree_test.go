package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the import path of the tree's root.
const module = "github.com/outlive-mcp/outlive"

// source is one Go file of the tree. Paths have forward slashes and are relative to the root.
type source struct {
	path string
	// wing and room are the two folders under internal; empty for cmd and bench.
	wing, room string
	test       bool
	fset       *token.FileSet
	ast        *ast.File
}

// finding is one broken rule, told so that an editor can jump there.
type finding string

func (s *source) at(pos token.Pos, format string, args ...any) finding {
	return finding(fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...)))
}

func parseSource(name string, text []byte) (*source, error) {
	s := &source{path: name, fset: token.NewFileSet(), test: strings.HasSuffix(name, "_test.go")}
	if parts := strings.Split(name, "/"); parts[0] == "internal" && len(parts) > 2 {
		s.wing, s.room = parts[1], parts[len(parts)-2]
	}
	var err error
	s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments)
	return s, err
}

// loadTree is every Go file under internal, cmd, bench, packaging, outlive-otel and outlive-fleet. A file that does not parse is reported and left out.
func loadTree(t *testing.T) []*source {
	t.Helper()
	return loadFolders(t, "internal", "cmd", "bench", "packaging", "outlive-otel", "outlive-fleet")
}

// loadTests is every test file of the repository.
func loadTests(t *testing.T) []*source {
	t.Helper()
	tests := loadFolders(t, "internal", "cmd", "bench", "packaging", "outlive-otel", "outlive-fleet", "e2e", ".ci")
	return slices.DeleteFunc(tests, func(s *source) bool { return !s.test })
}

// parsed is what parseFolder has made of a folder: many tests read the same ones.
var parsed = map[string]folder{}

type folder struct {
	files  []*source
	broken []error
}

func loadFolders(t *testing.T, tops ...string) (tree []*source) {
	t.Helper()
	for _, top := range tops {
		f, ok := parsed[top]
		if !ok {
			var err error
			if f, err = parseFolder(top); err != nil {
				t.Fatal(err)
			}
			parsed[top] = f
		}
		for _, err := range f.broken {
			t.Errorf("does not parse: %v", err)
		}
		tree = append(tree, f.files...)
	}
	if len(tree) == 0 {
		t.Fatal("no Go file found: the test must run in the module's root")
	}
	return tree
}

func parseFolder(top string) (f folder, err error) {
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".work"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(p), text)
		if err != nil {
			f.broken = append(f.broken, err)
			return nil
		}
		f.files = append(f.files, s)
		return nil
	})
	return f, err
}

// rooms groups the tree by room.
func rooms(tree []*source) map[string][]*source {
	m := map[string][]*source{}
	for _, s := range tree {
		if s.room != "" {
			m[s.room] = append(m[s.room], s)
		}
	}
	return m
}

// imports gives the import specs by path.
func (s *source) imports() map[string]*ast.ImportSpec {
	m := map[string]*ast.ImportSpec{}
	for _, spec := range s.ast.Imports {
		m[strings.Trim(spec.Path.Value, `"`)] = spec
	}
	return m
}

// uses calls found for each selector pkg.Name whose package is imported under its own name.
func (s *source) uses(found func(pkg, name string, pos token.Pos)) {
	known := map[string]bool{}
	for p, spec := range s.imports() {
		if spec.Name == nil {
			known[path.Base(p)] = true
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && known[id.Name] && id.Obj == nil {
			found(id.Name, sel.Sel.Name, sel.Pos())
		}
		return true
	})
}

// namesOf are the names by which a file knows these packages.
func (s *source) namesOf(packages ...string) (names []string) {
	for p, spec := range s.imports() {
		switch {
		case !slices.Contains(packages, p):
		case spec.Name != nil:
			names = append(names, spec.Name.Name)
		case path.Base(p) == "v2":
			names = append(names, path.Base(path.Dir(p)))
		default:
			names = append(names, path.Base(p))
		}
	}
	return names
}

// selectors calls found for each selector of the package that the file knows by this name.
func (s *source) selectors(pkg string, found func(*ast.SelectorExpr)) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg && id.Obj == nil {
				found(sel)
			}
		}
		return true
	})
}

// osSuffixes end the names of files that only one family of systems compiles.
var osSuffixes = []string{"linux", "darwin", "windows", "unix", "posix", "freebsd", "other"}

// forOneOS reports a file that its name's suffix binds to an operating system, such as tree_linux.go.
func (s *source) forOneOS() bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	for _, suffix := range osSuffixes {
		if strings.HasSuffix(stem, "_"+suffix) {
			return true
		}
	}
	return false
}

// constrained reports a file that is compiled for some systems or tags only.
func (s *source) constrained() bool {
	return s.forOneOS() || slices.ContainsFunc(s.ast.Comments, func(g *ast.CommentGroup) bool {
		return g.Pos() < s.ast.Package && slices.ContainsFunc(g.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:build ") })
	})
}

// publishedFiles are the files that are tracked, or would be after `git add .`; without git, everything but
// what is never published.
func publishedFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil && len(out) > 0 {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	var files []string
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == ".venv" || d.Name() == ".work" || filepath.ToSlash(p) == ".ci/results"):
			return filepath.SkipDir
		case !d.IsDir():
			files = append(files, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readText gives the file's content, or nothing for binary and vanished files.
func readText(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil || bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
		return nil
	}
	return b
}
