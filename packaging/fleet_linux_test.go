package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
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

// What the API server of Kubernetes would refuse for a wrong or unknown field is refused here, and what a selector looks for is there.
func TestKubernetesManifests(t *testing.T) {
	names, err := filepath.Glob("fleet/kubernetes/*.yaml")
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	kinds := map[string]func() any{
		"v1 Service": func() any { return &core.Service{} }, "v1 ConfigMap": func() any { return &core.ConfigMap{} },
		"apps/v1 StatefulSet": func() any { return &apps.StatefulSet{} }, "apps/v1 Deployment": func() any { return &apps.Deployment{} }, "policy/v1 PodDisruptionBudget": func() any { return &policy.PodDisruptionBudget{} },
		"networking.k8s.io/v1 NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pods, wanted := map[string]bool{}, map[string]bool{}
		for _, one := range strings.Split(string(text), "\n---\n") {
			var about struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(one), &about); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			make, known := kinds[about.APIVersion+" "+about.Kind]
			if !known {
				t.Fatalf("%s: %+v is not known to this test", name, about)
			}
			object := make()
			if err := yaml.UnmarshalStrict([]byte(one), object); err != nil {
				t.Errorf("%s, %s: %v", name, about.Kind, err)
			}
			switch o := object.(type) {
			case *apps.StatefulSet:
				pods[labels(o.Spec.Template.Labels)], wanted[labels(o.Spec.Selector.MatchLabels)] = true, true
			case *apps.Deployment:
				pods[labels(o.Spec.Template.Labels)], wanted[labels(o.Spec.Selector.MatchLabels)] = true, true
			case *core.Service:
				wanted[labels(o.Spec.Selector)] = true
			case *policy.PodDisruptionBudget:
				wanted[labels(o.Spec.Selector.MatchLabels)] = true
			case *core.ConfigMap:
				acceptable(t, o.Data["outlive.yaml"])
			case *networking.NetworkPolicy:
				wanted[labels(o.Spec.PodSelector.MatchLabels)] = true
				for _, in := range o.Spec.Ingress {
					for _, from := range in.From {
						if set := from.PodSelector.MatchLabels; len(set) > 0 {
							wanted[labels(set)] = true
						}
					}
				}
				for _, out := range o.Spec.Egress {
					for _, to := range out.To {
						wanted[labels(to.PodSelector.MatchLabels)] = true
					}
				}
			}
		}
		for selector := range wanted {
			if !pods[selector] {
				t.Errorf("%s: nothing has %s", name, selector)
			}
		}
	}
}

// acceptable wants a gateway's configuration, with the token where it may be read here.
func acceptable(t *testing.T, text string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse("outlive.yaml", []byte(strings.ReplaceAll(text, "/etc/outlive-token/token", token)), config.Options{Dir: t.TempDir()}); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
}

func labels(set map[string]string) string {
	text, _ := yaml.Marshal(set)
	return string(text)
}

// The reader of the Compose specification takes the file, with its schema.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("fleet/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: ".", Environment: types.Mapping{}, ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}},
	}, func(o *loader.Options) { o.SetProjectName("outlive", true) })
	if err != nil {
		t.Fatal(err)
	}
	if hub, err := project.GetService("hub"); err != nil || !hub.ReadOnly || len(hub.Ports) != 1 {
		t.Errorf("%+v, %v", hub, err)
	}
}
