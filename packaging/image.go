package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user in the image, with the number that distroless images use.
const nonroot = 65532

// images makes one with outlive, and one with outlive-fleet as well.
func (d *dist) images() error {
	return errors.Join(
		d.image("outlive", func(p program) []string { return []string{p.path} }),
		d.image(fleetName, func(p program) []string { return []string{p.path, p.fleet.path} }),
	)
}

// image makes an OCI image layout as a tar, with an image for each of Linux' targets: programs, of which outlive is run, the root
// certificates, a home for its user, and nothing else.
func (d *dist) image(name string, programs func(program) []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range d.programs {
		if p.os != "linux" {
			continue
		}
		img, err := d.imageOf(name, p.target, programs(p))
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	dir := filepath.Join(d.stage, "image", name)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": d.text})); err != nil {
		return err
	}
	entries := []entry{}
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		inside, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if e.IsDir() {
			entries = append(entries, entry{name: filepath.ToSlash(inside), mode: 0o755})
			return nil
		}
		text, err := os.ReadFile(name)
		entries = append(entries, file(filepath.ToSlash(inside), text))
		return err
	})
	if err != nil {
		return err
	}
	return d.pack(fmt.Sprintf("%s_%s_image.tar", name, d.text), entries)
}

func (d *dist) imageOf(name string, t target, programs []string) (v1.Image, error) {
	papers, err := d.staged("doc", "usr/share/doc/outlive/")
	if err != nil {
		return nil, err
	}
	home := entry{name: "var/lib/outlive", mode: 0o700, uid: nonroot, gid: nonroot}
	entries := []entry{
		{name: "etc", mode: 0o755}, file("etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/var/lib/outlive:/sbin/nologin\n", nonroot, nonroot)),
		file("etc/group", fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonroot)),
		{name: "etc/ssl", mode: 0o755}, {name: "etc/ssl/certs", mode: 0o755}, file("etc/ssl/certs/ca-certificates.crt", roots()),
		{name: "var", mode: 0o755}, {name: "var/lib", mode: 0o755}, home, {name: "tmp", mode: 0o777 | fs.ModeSticky},
		{name: "usr", mode: 0o755}, {name: "usr/bin", mode: 0o755},
		{name: "usr/share", mode: 0o755}, {name: "usr/share/doc", mode: 0o755}, {name: "usr/share/doc/outlive", mode: 0o755},
	}
	for _, path := range programs {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: "usr/bin/" + filepath.Base(path), text: text, mode: 0o755})
	}
	raw, err := tarOf(append(entries, papers...), d.date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: d.date}, CreatedBy: "packaging of outlive"}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.os, t.arch, v1.Time{Time: d.date}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nonroot, nonroot), WorkingDir: "/var/lib/outlive", Entrypoint: []string{"/usr/bin/outlive"},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/outlive"},
		Labels: map[string]string{
			"org.opencontainers.image.title": name, "org.opencontainers.image.description": summary, "org.opencontainers.image.source": homepage,
			"org.opencontainers.image.version": d.text, "org.opencontainers.image.revision": d.commit, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, config)
}

// roots are the certificates of Mozilla's trust store, as Go keeps them, in the order of their texts. A root that is trusted
// for a part of its certificates only is left out: the file cannot say so.
func roots() []byte {
	var all []string
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})))
		}
	}
	slices.Sort(all)
	return []byte(strings.Join(all, ""))
}
