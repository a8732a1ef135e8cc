package main

import (
	"os"
	"strings"
	"testing"
)

// The settings of every gateway stand in the report, ours too.
func TestSettingsAreTold(t *testing.T) {
	b := &bench{}
	for _, g := range append(ours(), others()...) {
		if g.settings == "" || g.setup == nil {
			t.Errorf("%s: no settings, or no way to start it", g.name)
		}
		g.version = "v1"
		b.measuredGateways = append(b.measuredGateways, g)
	}
	out, err := b.settings()
	if err != nil {
		t.Fatal(err)
	}
	text := out.tables[0].Markdown()
	for _, want := range []string{"| outlive | v1 | defaults", "| outlive, shared | v1 | `shared: true`", "docker/mcp-gateway", "1mcp", "FastMCP"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// outlive is configured with its server and nothing else, so that its defaults are what is measured.
func TestOutliveIsMeasuredWithItsDefaults(t *testing.T) {
	for _, g := range ours() {
		s := site{dir: t.TempDir(), program: "outlive", server: "/bin/echo", names: []string{"s0"}, port: "1"}
		how, err := g.setup(s)
		if err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(how.argv[3])
		if err != nil {
			t.Fatal(err)
		}
		text := string(written)
		want := "servers:\n  s0:\n    command: /bin/echo\n"
		if strings.Contains(g.settings, "`shared: true`") {
			want += "    shared: true\n"
		}
		if strings.Contains(g.settings, "2026-07-28") {
			want += "    " + bothEras + "\n"
		}
		if text != want || strings.Join(how.argv[:3], " ") != "outlive gateway -c" || strings.Join(how.argv[4:], " ") != "--listen 127.0.0.1:1" {
			t.Errorf("%s is started by %q with\n%s", g.name, how.argv, text)
		}
	}
}

// A gateway that does not start is named, with what it said, and the others are measured all the same.
func TestAGatewayThatFailsIsNamed(t *testing.T) {
	b := &bench{dir: t.TempDir(), echo: "/bin/true", say: func(string, ...any) {},
		crowd: crowdPlan{rounds: 1, starts: 1, row: 1, growths: 1, together: 1, sessions: []int{1}, servers: []int{1}, lists: 1}}
	b.measuredGateways = []gateway{{name: "broken", program: "/bin/sh", many: true, setup: func(s site) (startup, error) {
		return startup{argv: []string{s.program, "-c", "echo no such option; exit 2"}}, nil
	}}}
	if rows := b.loadOf(1); len(rows) != 0 {
		t.Errorf("it has a row under load: %+v", rows)
	}
	for _, measure := range []func() (outcome, error){b.killings, b.sessionCurves, b.backendCurves} {
		if _, err := measure(); err != nil {
			t.Error(err)
		}
	}
	if len(b.failures) != 4 {
		t.Errorf("%d of 4 parts say that it failed: %q", len(b.failures), b.failures)
	}
	for _, text := range b.failures {
		if !strings.Contains(text, "broken") || !strings.Contains(text, "no such option") {
			t.Errorf("a failure says only %q", text)
		}
	}
}
