package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive, or a folder if text is nil.
type entry struct {
	name     string // with slashes
	text     []byte
	mode     fs.FileMode
	uid, gid int
}

// file is a plain file of root's that everybody may read.
func file(name string, text []byte) entry { return entry{name: name, text: text, mode: 0o644} }

// tarOf is a tar of the entries, in their order.
func tarOf(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Uid: e.uid, Gid: e.gid, Size: int64(len(e.text)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if e.text == nil {
			h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(e.name, "/")+"/"
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipOf is a zip of the entries. Modes have the bits of a regular file: without them pip drops the executable bit.
func zipOf(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode.Perm())
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// staged are the files of a staged folder as entries below prefix, sorted.
func (d *dist) staged(folder, prefix string) ([]entry, error) {
	var all []entry
	names, err := os.ReadDir(filepath.Join(d.stage, folder))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		text, err := os.ReadFile(filepath.Join(d.stage, folder, n.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file(prefix+n.Name(), text))
	}
	return all, nil
}

// archiveName is the name of a target's archive of outlive or outlive-fleet.
func (d *dist) archiveName(what string, t target) string {
	ending := ".tar.gz"
	if t.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s%s", what, d.text, t.os, t.arch, ending)
}

// archives makes two for each target, each with all of it in a folder: outlive with completions, manual, units and licences; and
// outlive-fleet with what starts it on many machines.
func (d *dist) archives() error {
	for _, p := range d.programs {
		folders := map[string]string{"doc": "", "completions": "completions/", "metrics": "metrics/"}
		fleet := map[string]string{"doc": "", "fleet": "", "kubernetes": "kubernetes/"}
		if p.os != "windows" {
			folders["man"] = "man/man1/"
		}
		if p.os == "linux" {
			folders["systemd"], folders["container"] = "systemd/", "container/"
			fleet["fleet-systemd"] = "systemd/"
		}
		if err := d.archive("outlive", p.target, folders, p.path, p.otel.path); err != nil {
			return err
		}
		if err := d.archive(fleetName, p.target, fleet, p.fleet.path); err != nil {
			return err
		}
	}
	return nil
}

// archive makes one of programs and of staged folders, each with where it is in the archive.
func (d *dist) archive(what string, t target, folders map[string]string, programs ...string) error {
	name := d.archiveName(what, t)
	top := strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip") + "/"
	var entries []entry
	for _, path := range programs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: top + filepath.Base(path), text: text, mode: 0o755})
	}
	for folder, prefix := range folders {
		more, err := d.staged(folder, top+prefix)
		if err != nil {
			return err
		}
		entries = append(entries, more...)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return d.pack(name, entries)
}

// pack writes an archive whose kind its name tells: .zip, .whl, .mcpb, .tar, .tar.gz or .tgz.
func (d *dist) pack(name string, entries []entry) error {
	var text []byte
	var err error
	switch filepath.Ext(name) {
	case ".zip", ".whl", ".mcpb":
		text, err = zipOf(entries, d.date)
	default:
		text, err = tarOf(entries, d.date)
	}
	if err == nil && strings.HasSuffix(name, "gz") {
		text, err = gzipped(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return writeFile(filepath.Join(d.out, name), text)
}
