package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/outlive-mcp/outlive/internal/ops/cli"
)

// notices is the file with the licences of all that is linked into outlive.
const notices = "THIRD-PARTY-LICENSES.txt"

// completions are the shells' files, by the word of `outlive completion`.
var completions = map[string]string{"bash": "outlive.bash", "zsh": "_outlive", "fish": "outlive.fish", "powershell": "outlive.ps1"}

// documents stages what goes into several packages: man/, completions/, systemd/, doc/.
func (d *dist) documents() error {
	for _, make := range []func() error{d.manual, d.shells, d.units, d.papers} {
		if err := make(); err != nil {
			return err
		}
	}
	return nil
}

func (d *dist) manual() error {
	dir := filepath.Join(d.stage, "man")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Date: &d.date, Source: "outlive " + d.text, Manual: "outlive"}
	return doc.GenManTree(cli.Command(), header, dir)
}

// ask runs outlive in an environment without anything of this machine.
func (d *dist) ask(args ...string) ([]byte, error) {
	cmd := exec.Command(d.host().path, args...)
	cmd.Env = []string{"HOME=" + nobodysHome}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("outlive %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

func (d *dist) shells() error {
	for shell, name := range completions {
		text, err := d.ask("completion", shell)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.stage, "completions", name), text); err != nil {
			return err
		}
	}
	return nil
}

// nobodysHome stands for the user's home in a unit for all users.
const nobodysHome = "/nobodys-home"

// units are the services as outlive itself installs them, for any user: with no PATH but the user manager's.
func (d *dist) units() error {
	for name, folder := range map[string]string{"monitor": "systemd", "gateway": "systemd", "fleet-hub": "fleet-systemd", "fleet-join": "fleet-systemd"} {
		text, err := d.ask("service", "print", name, "--for", "systemd", "--program", "/usr/bin/outlive", "--env", "PATH=none")
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte("Environment=PATH=none\n"), nil)
		text = bytes.ReplaceAll(text, []byte(nobodysHome+"/"), []byte("%h/"))
		if err := writeFile(filepath.Join(d.stage, folder, "outlive-"+name+".service"), text); err != nil {
			return err
		}
	}
	return nil
}

// papers are licences and texts for people.
func (d *dist) papers() error {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(d.root, name))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.stage, "doc", name), text); err != nil {
			return err
		}
	}
	for to, from := range map[string]string{ // folders of files that are as they are in the clone
		"container": "packaging/container/Containerfile", "metrics": "packaging/metrics/*", "fleet": "packaging/fleet/*.*", "kubernetes": "packaging/fleet/kubernetes/*.yaml",
	} {
		names, err := filepath.Glob(filepath.Join(d.root, filepath.FromSlash(from)))
		if err != nil || len(names) == 0 {
			return fmt.Errorf("%s: %d files, %w", from, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := writeFile(filepath.Join(d.stage, to, filepath.Base(name)), text); err != nil {
				return err
			}
		}
	}
	text, err := d.licences()
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.stage, "doc", notices), text)
}

// ownModule is outlive itself, which the others link.
const ownModule = "github.com/outlive-mcp/outlive"

// licenceFile is how files with a licence, a notice or a list of owners are called.
var licenceFile = regexp.MustCompile(`(?i)^(.*licen[cs]e.*|copying.*|notice.*|copyright.*|patents)$`)

// licences are the texts of all modules that are linked into any of the programs, and Go's own. A module without one is an
// error.
func (d *dist) licences() ([]byte, error) {
	dirs := map[string]string{} // of the module that has it, by path and version
	for _, p := range d.programs {
		for name, other := range map[string]built{otelName: p.otel, fleetName: p.fleet} {
			for _, m := range other.info.Deps {
				if m.Path != ownModule {
					dirs[m.Path+" "+m.Version] = filepath.Join(d.root, name)
				}
			}
		}
		for _, m := range p.info.Deps {
			dirs[m.Path+" "+m.Version] = d.root
		}
	}
	names := []string{}
	for name := range dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	goroot, err := output(d.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "outlive is licensed under the Apache License 2.0, see LICENSE. These are the licences of what is linked into it.\n")
	if err := licencesOf(&b, "Go and its standard library, "+d.host().info.GoVersion, goroot); err != nil {
		return nil, err
	}
	for _, name := range names {
		path, _, _ := strings.Cut(name, " ")
		dir, err := output(dirs[name], "go", "list", "-m", "-f", "{{.Dir}}", path)
		if err != nil {
			return nil, err
		}
		if err := licencesOf(&b, name, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func licencesOf(b *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return nil
}

// output is what a command prints, without the last line's end.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// writeFile also makes the folder.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// gzipped has neither a name nor a time in it.
func gzipped(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}
