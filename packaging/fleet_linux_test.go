package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// canMakeTokens wants an outlive that finds outlive-fleet, of its own version.
func (p *place) canMakeTokens(command ...string) {
	p.Helper()
	out := p.run(command[0], append(command[1:], "fleet", "token", "make", "build1")...)
	if !strings.Contains(out, "outlive1.") {
		p.Errorf("fleet token make: %s", out)
	}
}

// withoutState removes what a hub keeps, wherever the state is.
func (p *place) withoutState() {
	p.Helper()
	for _, dir := range []string{p.empty[len(p.empty)-1], filepath.Join(p.home, ".local")} {
		if err := os.RemoveAll(dir); err != nil {
			p.Error(err)
		}
	}
}

func TestFleetArchive(t *testing.T) {
	t.Parallel()
	from, main := one(t, "outlive-fleet_*_linux_ARCH.tar.gz"), one(t, "outlive_*_linux_ARCH.tar.gz")
	p := newPlace(t)
	p.run("/usr/bin/tar", "-xzf", main, "--strip-components=1")
	p.run("/usr/bin/tar", "-xzf", from, "--strip-components=1")
	for _, name := range []string{"LICENSE", notices, "compose.yaml", "kubernetes/hub.yaml", "kubernetes/gateway.yaml", "kubernetes/gateways.yaml", "systemd/outlive-fleet-hub.service", "systemd/outlive-fleet-join.service"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.canMakeTokens(filepath.Join(p.dir, "outlive"))
	p.withoutState()
	p.emptied()
	p.nothingLeft()
}

// The package of outlive-fleet wants that of outlive, and is removed before it.
func TestFleetDeb(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("dpkg makes files of root's: run as root, or in unshare -r")
	}
	from, main := one(t, "outlive-fleet_*_ARCH.deb"), one(t, "outlive_*_ARCH.deb")
	p := newPlace(t, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	dpkg := p.debian()
	alone := exec.Command("/usr/bin/dpkg", "--root="+p.dir, "--log=/dev/null", "--force-architecture", "-i", from)
	alone.Env = p.env
	if out, err := alone.CombinedOutput(); err == nil || !strings.Contains(string(out), "outlive-fleet depends on outlive") {
		t.Errorf("without outlive: %v: %s", err, out)
	}
	dpkg("-i", main, from)
	unit, err := os.ReadFile(filepath.Join(p.dir, "usr/lib/systemd/user/outlive-fleet-join.service"))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/usr/bin/outlive fleet join\n") {
		t.Errorf("%v: %s", err, unit)
	}
	p.canMakeTokens(filepath.Join(p.dir, "usr/bin/outlive"))
	p.withoutState()
	dpkg("--purge", "outlive-fleet", "outlive")
	p.forget()
	p.nothingLeft()
}

// The hub runs in its image as the deployments below start it, and makes tokens there.
func TestFleetImage(t *testing.T) {
	p, command := enterImage(t, one(t, "outlive-fleet_*_image.tar"))
	hub := exec.Command(command[0], append(command[1:], "fleet", "hub")...)
	hub.Dir, hub.Env = p.dir, p.env
	hub.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // unshare, and the first process of its name space
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	hub.Stderr = said
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(p.home, ".local/state/outlive/fleet/hub/hub.json")
	t.Cleanup(func() {
		if text, err := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("the hub says: %s, %v", text, err)
		}
	})
	t.Cleanup(func() {
		_ = syscall.Kill(-hub.Process.Pid, syscall.SIGKILL)
		_ = hub.Wait()
	})
	await.Until(t, "the hub has made "+identity, func() bool { _, err := os.Stat(identity); return err == nil })
	p.canMakeTokens(command...)
	_ = syscall.Kill(-hub.Process.Pid, syscall.SIGKILL)
	_ = hub.Wait()
	if text, err := os.ReadFile(said.Name()); t.Failed() {
		t.Logf("the hub says: %s, %v", text, err)
	}
	p.withoutState()
	p.emptied()
}
