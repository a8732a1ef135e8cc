package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers the format
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	homepage = "https://github.com/outlive-mcp/outlive"
	summary  = "Keeps MCP servers and unattended AI agents alive"

	fleetSummary = "Joins machines that outlive runs on: seen and cared for as one"

	owner = "The outlive authors <outlive-mcp@users.noreply.github.com>"
)

// systemPackages makes packages for Linux's package managers. They have no scripts: nothing is enabled or started.
func (d *dist) systemPackages() error {
	pages, err := d.staged("man", "")
	if err != nil {
		return err
	}
	for _, page := range pages { // package managers want them compressed
		text, err := gzipped(page.text)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.stage, "man.gz", page.name+".gz"), text); err != nil {
			return err
		}
	}
	for _, p := range d.programs {
		if p.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm", "apk"} {
			if err := errors.Join(d.outlivePackage(format, p), d.fleetPackage(format, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// contents are the files of a package for a package manager.
type contents struct {
	d *dist
	files.Contents
}

func (c *contents) add(from, to string, mode os.FileMode) {
	c.Contents = append(c.Contents, &files.Content{Source: from, Destination: to,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: c.d.date}})
}

// addStaged adds the files of a staged folder; to gives each its path, or "" to leave it out.
func (c *contents) addStaged(folder string, to func(name string) string) error {
	entries, err := c.d.staged(folder, "")
	for _, e := range entries {
		if path := to(e.name); path != "" {
			c.add(filepath.Join(c.d.stage, folder, e.name), path, 0o644)
		}
	}
	return err
}

func below(dir string) func(string) string { return func(name string) string { return dir + name } }

// addLicence adds the licence where Debian wants it.
func (c *contents) addLicence(format, name string) {
	if format == "deb" {
		c.add(filepath.Join(c.d.stage, "doc", "LICENSE"), "/usr/share/doc/"+name+"/copyright", 0o644)
	}
}

func (d *dist) outlivePackage(format string, p program) error {
	c := contents{d: d}
	c.add(p.path, "/usr/bin/outlive", 0o755)
	c.add(p.otel.path, "/usr/bin/"+otelName, 0o755)
	zsh := "/usr/share/zsh/site-functions/"
	if format == "deb" {
		zsh = "/usr/share/zsh/vendor-completions/"
	}
	shells := map[string]string{
		"outlive.bash": "/usr/share/bash-completion/completions/outlive", "_outlive": zsh + "_outlive",
		"outlive.fish": "/usr/share/fish/vendor_completions.d/outlive.fish",
	}
	err := errors.Join(
		c.addStaged("man.gz", below("/usr/share/man/man1/")), c.addStaged("systemd", below("/usr/lib/systemd/user/")),
		c.addStaged("doc", below("/usr/share/doc/outlive/")), c.addStaged("metrics", below("/usr/share/doc/outlive/metrics/")),
		c.addStaged("completions", func(name string) string { return shells[name] }),
	)
	if err != nil {
		return err
	}
	c.addLicence(format, "outlive")
	return d.systemPackage(format, "outlive", summary, p, c)
}

// fleetPackage needs the package of outlive.
func (d *dist) fleetPackage(format string, p program) error {
	c := contents{d: d}
	c.add(p.fleet.path, "/usr/bin/"+fleetName, 0o755)
	err := errors.Join(
		c.addStaged("fleet-systemd", below("/usr/lib/systemd/user/")), c.addStaged("fleet", below("/usr/share/doc/outlive-fleet/")),
		c.addStaged("kubernetes", below("/usr/share/doc/outlive-fleet/kubernetes/")),
	)
	if err != nil {
		return err
	}
	c.addLicence(format, fleetName)
	return d.systemPackage(format, fleetName, fleetSummary, p, c, "outlive")
}

func (d *dist) systemPackage(format, name, about string, p program, c contents, needs ...string) error {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: name, Arch: p.arch, Platform: "linux", Version: d.text, Release: "1", Section: "utils", Priority: "optional",
		Maintainer: owner, Description: about, Homepage: homepage, License: "Apache-2.0", MTime: d.date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: c.Contents, Depends: needs, RPM: nfpm.RPM{BuildHost: "localhost", Summary: about}},
	})
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := packager.Package(info, &b); err != nil {
		return err
	}
	return writeFile(filepath.Join(d.out, packager.ConventionalFileName(info)), []byte(b.String()))
}
