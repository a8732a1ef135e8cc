package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", filepath.Join("..", "dist"), "folder that is made; what was in it is removed")
	targets := flag.String("targets", "", "targets separated by commas, such as linux/amd64,windows/arm64 (default: all)")
	tagged := flag.Bool("release", false, "fail unless the commit has a version's tag, CHANGELOG.md has that version, and no file was changed")
	jobs := flag.Int("p", 0, "how many packages are compiled at the same time (default: as many as there are processors)")
	flag.Parse()
	if err := run(*out, *targets, *tagged, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// dist is what is being made.
type dist struct {
	root  string // of the clone
	out   string
	stage string // files that go into several packages; removed at the end
	jobs  int
	version
	programs []program
}

func run(out, targets string, tagged bool, jobs int) (err error) {
	d := &dist{jobs: jobs}
	if d.root, err = filepath.Abs(".."); err != nil {
		return err
	}
	if d.out, err = filepath.Abs(out); err != nil {
		return err
	}
	wanted, err := parseTargets(targets)
	if err != nil {
		return err
	}
	if err := clear(d.out); err != nil {
		return err
	}
	d.stage = filepath.Join(d.out, ".stage")
	if err := errors.Join(writeFile(filepath.Join(d.out, marker), nil), os.Mkdir(d.stage, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.stage)) }()
	if err := d.build(wanted); err != nil {
		return err
	}
	if tagged {
		if err := d.checkRelease(); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		make func() error
	}{
		{"manual, completions, units, licences", d.documents},
		{"archives", d.archives},
		{"deb, rpm, apk", d.systemPackages},
		{"npm", d.npm},
		{"wheels", d.wheels},
		{"images", d.images},
		{"bills of materials", d.boms},
		{"Homebrew, scoop", d.manifests},
		{"winget", d.winget},
		{"MCP bundles, server.json", d.bundles},
	} {
		begin := time.Now()
		if err := step.make(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-40s %5.1f s\n", step.name, time.Since(begin).Seconds())
	}
	if err := os.RemoveAll(d.stage); err != nil {
		return err
	}
	return d.sums()
}

// marker is in every folder that we have made, so that no other one is ever cleared.
const marker = "checksums.txt"

// clear makes an empty folder. One that we have not made is not touched.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	}
	ours := len(entries) == 0
	for _, e := range entries {
		ours = ours || e.Name() == marker
	}
	if !ours {
		return fmt.Errorf("%s holds other files: name another folder with -out", dir)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// checkRelease refuses what is not the commit of a version.
func (d *dist) checkRelease() error {
	if d.modified || d.snapshot() {
		return fmt.Errorf("%s is not a version: tag the commit, such as v0.1.0, and leave no changed file", d.text)
	}
	changes, err := os.ReadFile(filepath.Join(d.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(changes), "\n## "+d.text+" ") && !strings.Contains(string(changes), "\n## "+d.text+"\n") {
		return fmt.Errorf("CHANGELOG.md has no heading for %s", d.text)
	}
	return nil
}
