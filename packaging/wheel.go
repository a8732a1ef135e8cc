package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// wheelTags are pip's words for the targets. The programs need no C library, so those of Linux run with glibc and with
// musl; Go 1.26 needs macOS 12.
var wheelTags = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

// prerelease is a version such as 0.2.0-rc.1.
var prerelease = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(alpha|beta|rc)\.(\d+)$`)

// pythons is a version as Python writes it (PEP 440).
func pythons(version string) (string, error) {
	v := "v" + version
	if module.IsPseudoVersion(v) {
		at, err := module.PseudoVersionTime(v)
		if err != nil {
			return "", err
		}
		number, _, _ := strings.Cut(version, "-")
		return number + ".dev" + at.Format("20060102150405"), nil
	}
	if m := prerelease.FindStringSubmatch(version); m != nil {
		return m[1] + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[2]] + m[3], nil
	}
	if semver.Prerelease(v) != "" {
		return "", fmt.Errorf("version %s is none of Python's: tag it like v0.2.0-rc.1", version)
	}
	return version, nil
}

// wheels makes one for each target. It holds the program as a script, and a module of a few lines for `uvx outlive-mcp`,
// which wants a command of the package's name.
func (d *dist) wheels() error {
	v, err := pythons(d.text)
	if err != nil {
		return err
	}
	readme, err := launchers.ReadFile("pypi/README.md")
	if err != nil {
		return err
	}
	info := "outlive_mcp-" + v + ".dist-info/"
	common := []entry{}
	for _, name := range []string{"__init__.py", "__main__.py"} {
		text, err := launchers.ReadFile("pypi/" + name)
		if err != nil {
			return err
		}
		common = append(common, file("outlive_mcp/"+name, text))
	}
	for _, name := range []string{"LICENSE", notices} {
		text, err := os.ReadFile(filepath.Join(d.stage, "doc", name))
		if err != nil {
			return err
		}
		common = append(common, file(info+"licenses/"+name, text))
	}
	common = append(common,
		file(info+"METADATA", fmt.Appendf(nil, "Metadata-Version: 2.4\nName: outlive-mcp\nVersion: %s\nSummary: %s\nProject-URL: Homepage, %s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: %s\nRequires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n%s", v, summary, homepage, notices, readme)),
		file(info+"entry_points.txt", []byte("[console_scripts]\noutlive-mcp = outlive_mcp:main\n")),
	)
	for _, p := range d.programs {
		tags := wheelTags[p.String()]
		program, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		var wheel bytes.Buffer
		fmt.Fprintf(&wheel, "Wheel-Version: 1.0\nGenerator: outlive packaging\nRoot-Is-Purelib: false\n")
		for _, tag := range strings.Split(tags, ".") {
			fmt.Fprintf(&wheel, "Tag: py3-none-%s\n", tag)
		}
		entries := append([]entry{{name: "outlive_mcp-" + v + ".data/scripts/" + p.exe(), text: program, mode: 0o755}}, common...)
		entries = append(entries, file(info+"WHEEL", wheel.Bytes()))
		entries = append(entries, file(info+"RECORD", record(info, entries)))
		if err := d.pack(fmt.Sprintf("pypi/outlive_mcp-%s-py3-none-%s.whl", v, tags), entries); err != nil {
			return err
		}
	}
	return nil
}

// record lists the files of a wheel with their digests.
func record(info string, entries []entry) []byte {
	var b bytes.Buffer
	for _, e := range entries {
		sum := sha256.Sum256(e.text)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.text))
	}
	fmt.Fprintf(&b, "%sRECORD,,\n", info)
	return b.Bytes()
}
