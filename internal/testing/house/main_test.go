package house

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain runs the tests in the module's root, so that every path is one of the tree.
func TestMain(m *testing.M) {
	if err := goToRoot(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// goToRoot changes to the next folder above whose go.mod is that of the module.
func goToRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Fields(string(text)), module) {
			return os.Chdir(dir)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return errors.New("no folder above has the go.mod of " + module)
		}
		dir = up
	}
}

// Without the root, rules would be checked on nothing.
func TestRunsInTheRoot(t *testing.T) {
	for _, name := range []string{"go.mod", ".ci/run", "cmd/outlive/main.go", "e2e/go.mod"} {
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			t.Error(err)
		}
	}
}
