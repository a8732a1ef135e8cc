package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// python is the interpreter itself: a launcher of several versions needs more than an empty environment has.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// npmEnvironment lets npm find node and sh, and keep its files out of the home.
func npmEnvironment(t *testing.T) (npm string, env []string) {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	return npm, []string{"PATH=" + filepath.Dir(node) + ":/usr/bin:/bin", "npm_config_cache=" + cache, "npm_config_userconfig=" + filepath.Join(cache, "npmrc"), "npm_config_update_notifier=false"}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	from := one(t, "outlive_*_linux_ARCH.tar.gz")
	p := newPlace(t)
	p.installed("archive", func() { p.run("/usr/bin/tar", "-xzf", from, "--strip-components=1") }, from)
	p.tryOut(filepath.Join(p.dir, "outlive"))
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", notices, "completions/outlive.bash", "completions/_outlive", "completions/outlive.fish", "man/man1/outlive.1", "man/man1/outlive-run.1", "systemd/outlive-monitor.service"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.run("/bin/bash", "-n", "completions/outlive.bash")
	p.removed(p.emptied)
}

// emptied removes all that was unpacked.
func (p *place) emptied() {
	p.Helper()
	if err := errors.Join(os.RemoveAll(p.dir), os.Mkdir(p.dir, 0o755)); err != nil {
		p.Fatal(err)
	}
}

func TestDeb(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("dpkg makes files of root's: run as root, or in unshare -r")
	}
	from := one(t, "outlive_*_ARCH.deb")
	p := newPlace(t, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	dpkg := p.debian()
	p.installed("deb", func() { dpkg("-i", from) }, from)
	for _, name := range []string{"usr/share/man/man1/outlive.1.gz", "usr/share/bash-completion/completions/outlive", "usr/share/doc/outlive/copyright"} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err != nil {
			t.Error(err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(p.dir, "usr/lib/systemd/user/outlive-monitor.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/outlive monitor\n") ||
		!strings.Contains(string(unit), "\nEnvironmentFile=-%h/.config/outlive/monitor.env\n") || strings.Contains(string(unit), "\nEnvironment=") {
		t.Errorf("%v: %s", err, unit)
	}
	for _, name := range p.files() {
		if strings.Contains(name, ".wants/") || strings.HasSuffix(name, ".postinst") || strings.HasSuffix(name, ".preinst") {
			t.Errorf("%s: something is done or enabled at installation", name)
		}
	}
	p.tryOut(filepath.Join(p.dir, "usr/bin/outlive"))
	p.removed(func() {
		dpkg("--purge", "outlive")
		p.forget()
	})
}

// debian makes an empty Debian, and returns its dpkg.
func (p *place) debian() func(args ...string) string {
	p.Helper()
	for _, name := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(p.dir, "var/lib/dpkg", name), 0o755); err != nil {
			p.Fatal(err)
		}
	}
	if err := writeFile(filepath.Join(p.dir, "var/lib/dpkg/status"), nil); err != nil {
		p.Fatal(err)
	}
	return func(args ...string) string {
		p.Helper()
		return p.run("/usr/bin/dpkg", append([]string{"--root=" + p.dir, "--log=/dev/null", "--force-architecture"}, args...)...)
	}
}

// forget removes dpkg's copies of its own lists, which name what was there.
func (p *place) forget() {
	for _, name := range []string{"status-old", "available", "available-old"} {
		_ = os.Remove(filepath.Join(p.dir, "var/lib/dpkg", name))
	}
}

// There is no rpm here, so its package is unpacked by a reader of the format.
func TestRpmUnpacked(t *testing.T) {
	t.Parallel()
	from := one(t, "outlive-[0-9]*.RPM.rpm")
	p := newPlace(t)
	p.installed("rpm, unpacked", func() {
		f, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		pkg, err := rpmutils.ReadRpm(f)
		if err == nil {
			err = pkg.ExpandPayload(p.dir)
		}
		if err == nil { // the reader leaves modes to rpm
			err = os.Chmod(filepath.Join(p.dir, "usr/bin/outlive"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}, from)
	p.tryOut(filepath.Join(p.dir, "usr/bin/outlive"))
	p.removed(p.emptied)
}

// Nor is there an apk: its package is a tar in two parts.
func TestApkUnpacked(t *testing.T) {
	t.Parallel()
	from := one(t, "outlive_*_RPM.apk")
	p := newPlace(t)
	p.installed("apk, unpacked", func() { p.run("/usr/bin/tar", "--warning=no-unknown-keyword", "-xzf", from) }, from)
	p.tryOut(filepath.Join(p.dir, "usr/bin/outlive"))
	p.removed(p.emptied)
}

func TestNpm(t *testing.T) {
	t.Parallel()
	npm, env := npmEnvironment(t)
	from := one(t, "npm/outlive-mcp-linux-NPM-*.tgz")
	main := filepath.Join(filepath.Dir(from), "outlive-mcp-"+isVersion(t)+".tgz")
	p := newPlace(t, env...)
	p.installed("npm, the launcher and the program, run by npx", func() { p.run(npm, "install", "--offline", "--no-audit", "--no-fund", "--prefix", p.dir, main, from) }, main, from)
	var about map[string]any
	for _, name := range []string{"outlive-mcp", npmScope + "linux-" + nodes(runtime.GOARCH)} {
		text, err := os.ReadFile(filepath.Join(p.dir, "node_modules", name, "package.json"))
		if err == nil {
			err = json.Unmarshal(text, &about)
		}
		if err != nil || about["scripts"] != nil || about["license"] != "Apache-2.0" {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
	npx := filepath.Join(filepath.Dir(npm), "npx")
	p.tryOut(npx, "--offline", "outlive-mcp")
	// The launcher leaves with the program's exit status.
	cmd := exec.Command(npx, "--offline", "outlive-mcp", "no-such-command")
	cmd.Dir, cmd.Env = p.dir, p.env
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "no-such-command") {
		t.Errorf("a wrong command: %v: %s", err, out)
	}
	p.removed(func() {
		p.run(npm, "uninstall", "--offline", "--no-audit", "--no-fund", "--prefix", p.dir, "outlive-mcp", npmScope+"linux-"+nodes(runtime.GOARCH))
	})
}

func wheelHere(t *testing.T) string { return one(t, "pypi/*manylinux*_RPM.musllinux*.whl") }

func TestPip(t *testing.T) {
	t.Parallel()
	from := wheelHere(t)
	p := newPlace(t, "PATH=/usr/bin:/bin", "PIP_CONFIG_FILE=/dev/null", "PIP_NO_CACHE_DIR=1")
	p.run(python(t), "-m", "venv", p.dir)
	before := p.files()
	pip := filepath.Join(p.dir, "bin/python")
	p.installed("pip, into a new venv (with pip itself)", func() { p.run(pip, "-m", "pip", "install", "--quiet", "--no-index", from) }, from)
	p.tryOut(filepath.Join(p.dir, "bin/outlive"))
	if out := p.run(filepath.Join(p.dir, "bin/outlive-mcp"), "--version"); !strings.HasPrefix(out, "outlive v") {
		t.Errorf("outlive-mcp: %s", out)
	}
	if out := p.run(pip, "-m", "outlive_mcp", "--version"); !strings.HasPrefix(out, "outlive v") {
		t.Errorf("python -m outlive_mcp: %s", out)
	}
	p.removed(func() { p.run(pip, "-m", "pip", "uninstall", "--quiet", "--yes", "outlive-mcp") })
	for _, name := range p.files() {
		if !slices.Contains(before, name) && !strings.Contains(name, "__pycache__") {
			t.Errorf("left after removal: %s", name)
		}
	}
}

func TestUvx(t *testing.T) {
	t.Parallel()
	from := wheelHere(t)
	uvx, err := filepath.Abs(".work/venv/bin/uvx")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(uvx); err != nil {
		t.Fatalf("%v: packaging/install.sh installs it", err)
	}
	p := newPlace(t, "PATH=/usr/bin:/bin", "UV_NO_CONFIG=1", "UV_PYTHON="+python(t))
	p.env = append(p.env, "UV_CACHE_DIR="+filepath.Join(p.dir, "cache"), "UV_TOOL_DIR="+filepath.Join(p.dir, "tools"))
	command := []string{uvx, "--offline", "--quiet", "--no-index", "--find-links", filepath.Dir(from), "outlive-mcp"}
	p.installed("uvx, with its cache", func() { p.run(command[0], append(command[1:], "--version")...) }, from)
	p.tryOut(command...)
	p.removed(func() { p.run(filepath.Join(filepath.Dir(uvx), "uv"), "cache", "clean", "--quiet") })
}
