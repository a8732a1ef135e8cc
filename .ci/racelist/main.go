// Racelist prints the import paths of the packages below the current folder that the race detector has something to find in.
//
// These are the packages whose code or tests start goroutines or import sync or sync/atomic, one a line, as this system compiles
// them; how many there are goes to standard error. In another module of the repository it is run by its file: go run ../.ci/racelist/main.go.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

func main() {
	all, paths, err := concurrent(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "racelist:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "%d of %d packages can race\n", len(paths), all)
	for _, path := range paths {
		fmt.Println(path)
	}
}

// listed is what go list says of one package.
type listed struct {
	Dir, ImportPath                              string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

// concurrent returns how many packages are below dir, and the import paths of those that have something concurrent. None at all is
// an error: a list that came out empty by mistake would let everything pass.
func concurrent(dir string) (all int, paths []string, err error) {
	list := exec.Command("go", "list", "-json=Dir,ImportPath,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("go list: %w", err)
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, nil, fmt.Errorf("what go list says: %w", err)
		}
		all++
		found, err := p.concurrent()
		if err != nil {
			return 0, nil, err
		}
		if found {
			paths = append(paths, p.ImportPath)
		}
	}
	if len(paths) == 0 {
		return 0, nil, errors.New("no package starts a goroutine")
	}
	return all, paths, nil
}

// concurrent reports whether a file of the package or of its tests has something concurrent.
func (p listed) concurrent() (bool, error) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if imports(file) || starts(file) {
			return true, nil
		}
	}
	return false, nil
}

// concurrentImports are what is imported by those only who have something concurrent: a server of httptest calls its handler on
// goroutines of its own.
var concurrentImports = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "net/http/httptest"}

func imports(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		path, err := strconv.Unquote(i.Path.Value)
		return err == nil && slices.Contains(concurrentImports, path)
	})
}

// starters are methods and functions whose call lets something run on another goroutine: Go of a wait group or an errgroup,
// AfterFunc of time or context, and Parallel of a test. Who has another method of that name is listed without need, which costs
// little.
var starters = []string{"Go", "AfterFunc", "Parallel"}

func starts(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(starters, s.Sel.Name) {
				found = true
			}
		}
		return !found
	})
	return found
}
