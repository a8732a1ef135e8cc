package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/sassoftware/go-rpmutils"
)

func TestChecksums(t *testing.T) {
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", marker)
	cmd.Dir = made(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A version is written as each registry wants it.
func TestVersionsOfPython(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0":                               "0.1.0",
		"0.2.0-rc.1":                          "0.2.0rc1",
		"0.0.0-20261123134342-77c16b1986ef":   "0.0.0.dev20261123134342",
		"0.1.1-0.20261123134342-77c16b1986ef": "0.1.1.dev20261123134342",
		"0.2.0-nightly":                       "",
	} {
		if got, err := pythons(version); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", version, got, err, want)
		}
	}
}

// A folder that holds something else is never cleared.
func TestOnlyOurOwnFolderIsCleared(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(filepath.Join(dir, "thesis.tex"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := clear(dir); err == nil {
		t.Error("a folder with other files was cleared")
	}
	if err := writeFile(filepath.Join(dir, marker), nil); err != nil {
		t.Fatal(err)
	}
	if err := clear(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// untar gives the regular files and their modes; onto, if it is given, is where the tree is made.
func untar(t *testing.T, r io.Reader, onto string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(h.Name, "/")
		to := filepath.Join(onto, filepath.FromSlash(name))
		switch {
		case h.Typeflag == tar.TypeDir && onto != "":
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
		case h.Typeflag == tar.TypeReg:
			all[name] = h.Mode
			if onto == "" {
				continue
			}
			text, err := io.ReadAll(in)
			if err == nil {
				err = writeFile(to, text)
			}
			if err == nil {
				err = os.Chmod(to, h.FileInfo().Mode())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// systemFiles are in every package for a package manager, whichever.
func systemFiles(t *testing.T, what string, modes map[string]int64) {
	t.Helper()
	for name, mode := range map[string]int64{
		"usr/bin/outlive": 0o755, "usr/bin/outlive-otel": 0o755, "usr/share/doc/outlive/metrics/outlive.rules.yml": 0o644, "usr/share/man/man1/outlive.1.gz": 0o644, "usr/lib/systemd/user/outlive-monitor.service": 0o644,
		"usr/lib/systemd/user/outlive-gateway.service": 0o644, "usr/share/zsh/site-functions/_outlive": 0o644, "usr/share/doc/outlive/" + notices: 0o644,
	} {
		if got, there := modes[name]; !there || got&0o777 != mode {
			t.Errorf("%s: %s has mode %o, %v", what, name, got, there)
		}
	}
}

func TestRpm(t *testing.T) {
	f, err := os.Open(one(t, "outlive-[0-9]*.RPM.rpm"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pkg, err := rpmutils.ReadRpm(f)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := pkg.Header.GetString(rpmutils.NAME); name != "outlive" || err != nil {
		t.Errorf("name %q, %v", name, err)
	}
	for _, tag := range []int{rpmutils.PREIN, rpmutils.POSTIN, rpmutils.PREUN, rpmutils.POSTUN} {
		if pkg.Header.HasTag(tag) {
			t.Errorf("a script, tag %d", tag)
		}
	}
	modes := map[string]int64{}
	infos, err := pkg.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		modes[strings.TrimPrefix(i.Name(), "/")] = int64(i.Mode())
	}
	systemFiles(t, "rpm", modes)
}

func TestApk(t *testing.T) {
	text, err := os.ReadFile(one(t, "outlive_*_RPM.apk"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	modes := untar(t, z, "")
	if _, there := modes[".PKGINFO"]; !there {
		t.Error("no .PKGINFO")
	}
	systemFiles(t, "apk", modes)
}

// The archives that cannot be run here have what they should.
func TestArchivesOfOtherSystems(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(made(t), "outlive_*_windows_*.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("no target of Windows was made")
	}
	for _, name := range names {
		z, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		top := strings.TrimSuffix(filepath.Base(name), ".zip") + "/"
		for _, want := range []string{"outlive.exe", "outlive-otel.exe", "metrics/grafana.json", "LICENSE", notices, "completions/outlive.ps1"} {
			i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == top+want })
			if i < 0 || z.File[i].UncompressedSize64 == 0 {
				t.Errorf("%s has no %s", name, want)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBillOfMaterials(t *testing.T) {
	f, err := os.Open(one(t, "outlive_*_linux_ARCH.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(f, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if form := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$`); !form.MatchString(bom.SerialNumber) {
		t.Errorf("serial number %s", bom.SerialNumber)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
	}
	for _, want := range []string{"std", "modernc.org/sqlite", "github.com/spf13/cobra", "go.opentelemetry.io/otel/sdk"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %v", want, names)
		}
	}
}

// What installers get from the manifests is what was made.
func TestManifests(t *testing.T) {
	dir := made(t)
	cask, err := os.ReadFile(filepath.Join(dir, "homebrew", "outlive.rb"))
	if err != nil {
		t.Fatal(err)
	}
	pairs := regexp.MustCompile(`sha256 "([0-9a-f]{64})"\n\s+url "([^"]+)"`).FindAllStringSubmatch(string(cask), -1)
	if len(pairs) == 0 || strings.Count(string(cask), " do\n") != strings.Count(string(cask)+"\n", "end\n") {
		t.Errorf("the cask:\n%s", cask)
	}
	for _, p := range pairs {
		listed(t, p[2], p[1])
	}
	t.Run("scoop", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(dir, "scoop", "outlive.json"))
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("no target of Windows was made, so there is no manifest for scoop")
		}
		var scoop struct {
			Architecture map[string]struct{ URL, Hash string }
		}
		if err := errors.Join(err, json.Unmarshal(text, &scoop)); err != nil || len(scoop.Architecture) == 0 {
			t.Fatalf("%v: %s", err, text)
		}
		for _, a := range scoop.Architecture {
			listed(t, a.URL, a.Hash)
		}
	})
}

// A reader of images takes the layout, and the program runs in the image's file system, without anything else of this machine.
func TestImage(t *testing.T) {
	p, command := enterImage(t, one(t, "outlive_*_image.tar"))
	p.tryOut(command...)
	p.removed(p.emptied)
}

// enterImage unpacks an image, and returns the command that runs its program there.
func enterImage(t *testing.T, from string) (p *place, command []string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	untar(t, f, dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err = index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == runtime.GOARCH })
	if i < 0 {
		t.Fatalf("no image for this machine: %+v", manifest)
	}
	img, err := index.Image(manifest.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/outlive"}) {
		t.Errorf("%+v, %v", config, err)
	}
	p = newPlace(t)
	p.installed("container image, unpacked into an empty root", func() {
		content := mutate.Extract(img)
		defer content.Close()
		if _, there := untar(t, content, p.dir)["bin/sh"]; there {
			t.Error("there is a shell")
		}
	}, from)
	if certs, err := os.ReadFile(filepath.Join(p.dir, "etc/ssl/certs/ca-certificates.crt")); err != nil || strings.Count(string(certs), "BEGIN CERTIFICATE") < 50 {
		t.Errorf("root certificates: %v", err)
	}
	// A container gets these from whatever runs it.
	for _, dir := range []string{"proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p.env = config.Config.Env
	home := strings.TrimPrefix(config.Config.Env[slices.IndexFunc(config.Config.Env, func(v string) bool { return strings.HasPrefix(v, "HOME=") })], "HOME=")
	p.home, p.empty = filepath.Join(p.dir, home), []string{filepath.Join(p.dir, "tmp")}
	if err := writeFile(filepath.Join(p.home, ".cursor", "mcp.json"), []byte(sample)); err != nil {
		t.Fatal(err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil || exec.Command(unshare, "-rmpf", "true").Run() != nil {
		t.Skip("unshare cannot make name spaces here: the image's program was not run")
	}
	return p, []string{unshare, "-rmpf", "/bin/sh", "-c", `/bin/mount -t proc proc proc && /bin/mount --rbind /dev dev && exec /usr/sbin/chroot . /usr/bin/outlive "$@"`, "outlive"}
}
