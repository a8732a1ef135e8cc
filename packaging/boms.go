package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// boms writes for each target what is linked into its programs (CycloneDX, JSON): the modules of its build information.
func (d *dist) boms() error {
	for _, p := range d.programs {
		if err := errors.Join(d.bom("outlive", p.target, p.built, p.otel), d.bom(fleetName, p.target, p.fleet)); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// bom is of what an archive has: a program, and others with it.
func (d *dist) bom(what string, t target, p built, others ...built) error {
	text, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	component := func(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cyclonedx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
	}
	main := component(cyclonedx.ComponentTypeApplication, p.info.Main.Path, "v"+d.text)
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	parts := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(p.info.GoVersion, "go"))}
	refs := []string{parts[0].BOMRef}
	deps := slices.Clone(p.info.Deps)
	for _, m := range slices.Concat(depsOf(others)...) {
		if m.Path != ownModule && !slices.ContainsFunc(deps, func(o *debug.Module) bool { return o.Path == m.Path && o.Version == m.Version }) {
			deps = append(deps, m)
		}
	}
	for _, m := range deps {
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	// The number is the program's, so that the same program has the same one. Its form is that of a UUID of version 8.
	h := hex.EncodeToString(sum[:16])
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:32])
	bom.Metadata = &cyclonedx.Metadata{Timestamp: d.date.Format(time.RFC3339), Component: &main}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	f, err := os.Create(filepath.Join(d.out, fmt.Sprintf("%s_%s_%s_%s.cdx.json", what, d.text, t.os, t.arch)))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

func depsOf(all []built) (deps [][]*debug.Module) {
	for _, b := range all {
		deps = append(deps, b.info.Deps)
	}
	return deps
}
