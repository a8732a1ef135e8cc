package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are the programs under measurement.
type binaries struct {
	echo, floor, outlive string
}

// buildAll builds the programs into dir as a user would; outlive is left out if
// a path to a built one is given.
func buildAll(dir, built string) (binaries, error) {
	var out binaries
	for _, program := range []struct {
		path string
		into *string
	}{
		{"bench/echo", &out.echo}, {"bench/floor", &out.floor}, {"cmd/outlive", &out.outlive},
	} {
		if program.into == &out.outlive && built != "" {
			path, err := filepath.Abs(built)
			if err != nil {
				return out, fmt.Errorf("find %s: %w", built, err)
			}
			out.outlive = path
			continue
		}
		path, err := buildOne(dir, program.path)
		if err != nil {
			return out, err
		}
		*program.into = path
	}
	return out, nil
}

// buildOne builds one package of the module, a static binary.
func buildOne(dir, pkg string) (string, error) {
	root, err := moduleRoot()
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

// moduleRoot is the directory of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module (run from inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
