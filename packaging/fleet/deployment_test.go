// Package fleet has the files with which a fleet is deployed; the readers of their formats take them.
package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
)

// What the API server of Kubernetes would refuse for a wrong or unknown field is refused here, and what a selector looks for is there.
func TestKubernetesManifests(t *testing.T) {
	names, err := filepath.Glob("kubernetes/*.yaml")
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
	text, err := os.ReadFile("compose.yaml")
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
