// Package program builds the programs of this module that are measured, as a user would build them.
//
// It starts no goroutine; the go tool must be on the PATH, and the working directory inside the module.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root is the directory of go.mod.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module (run from inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build builds one package of the module into dir, a static binary called like the package, and returns its path.
func Build(dir, pkg string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-o", target, "./"+pkg)
	cmd.Dir, cmd.Stderr, cmd.Env = root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return target, nil
}

// Given is the path of a program that was built before, or else of one that is built now (see [Build]).
func Given(path, dir, pkg string) (string, error) {
	if path == "" {
		return Build(dir, pkg)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return absolute, nil
}
