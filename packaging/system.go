package main

import (
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
	owner    = "The outlive authors <outlive-mcp@users.noreply.github.com>"
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
			if err := d.systemPackage(format, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dist) systemPackage(format string, p program) error {
	contents := files.Contents{}
	add := func(from, to string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: from, Destination: to,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: d.date}})
	}
	add(p.path, "/usr/bin/outlive", 0o755)
	add(p.helperPath, "/usr/bin/outlive-otel", 0o755)
	zsh := "/usr/share/zsh/site-functions/"
	if format == "deb" {
		zsh = "/usr/share/zsh/vendor-completions/"
	}
	places := map[string]string{
		"man.gz": "/usr/share/man/man1/", "systemd": "/usr/lib/systemd/user/", "doc": "/usr/share/doc/outlive/", "metrics": "/usr/share/doc/outlive/metrics/",
		"outlive.bash": "/usr/share/bash-completion/completions/outlive", "_outlive": zsh + "_outlive",
		"outlive.fish": "/usr/share/fish/vendor_completions.d/outlive.fish",
	}
	for _, folder := range []string{"man.gz", "systemd", "doc", "metrics", "completions"} {
		entries, err := d.staged(folder, "")
		if err != nil {
			return err
		}
		for _, e := range entries {
			to := places[e.name]
			if folder != "completions" {
				to = places[folder] + e.name
			}
			if to != "" {
				add(filepath.Join(d.stage, folder, e.name), to, 0o644)
			}
		}
	}
	if format == "deb" {
		add(filepath.Join(d.stage, "doc", "LICENSE"), "/usr/share/doc/outlive/copyright", 0o644)
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "outlive", Arch: p.arch, Platform: "linux", Version: d.text, Release: "1", Section: "utils", Priority: "optional",
		Maintainer: owner, Description: summary, Homepage: homepage, License: "Apache-2.0", MTime: d.date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents, RPM: nfpm.RPM{BuildHost: "localhost", Summary: summary}},
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
