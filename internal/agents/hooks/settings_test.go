package hooks

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// ours are two hooks as an installer makes them.
func ours(v *Vendor) []Entry {
	return []Entry{
		{"Stop", v.HookCommand("/opt/outlive"), 10 * time.Second},
		{agentcli.PermissionRequest, v.HookCommand("/opt/outlive") + " --ask", 600 * time.Second},
	}
}

func install(t *testing.T, v *Vendor, text string) string {
	t.Helper()
	got, err := v.Install([]byte(text), ours(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestInstallLooksLikeItsNeighbours(t *testing.T) {
	v := VendorNamed("claude")
	before := `{
    // mine
    "model": "opus",
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ]
    }
}
`
	want := `{
    // mine
    "model": "opus",
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]},
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "/opt/outlive hook claude",
                        "timeout": 10
                    }
                ]
            }
        ],
        "PermissionRequest": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "/opt/outlive hook claude --ask",
                        "timeout": 600
                    }
                ]
            }
        ]
    }
}
`
	if diff := cmp.Diff(want, install(t, v, before)); diff != "" {
		t.Error(diff)
	}
}

// settingsInTheWild are shapes that people's files have.
var settingsInTheWild = map[string]string{
	"empty object":          "{}",
	"empty with space":      "{\n}\n",
	"no hooks":              "{\n  \"model\": \"opus\"\n}\n",
	"one line":              `{"model":"opus","big":12345678901234567890}`,
	"empty hooks":           `{"hooks": {}}`,
	"empty list":            "{\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t}\n}",
	"spacious empty list":   "{\"hooks\": {\"Stop\": [ ], \"Other\": [\n]}}",
	"others":                `{"hooks":{"Stop":[{"matcher":"","hooks":[{"type":"command","command":"say done"}]}]}}`,
	"tabs and CRLF":         "{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\"hooks\": []}\r\n\t\t]\r\n\t}\r\n}\r\n",
	"byte order mark":       "\ufeff{\"a\": \"<&>\"}",
	"comments":              "// top\n{\n  \"a\": 1, // one\n  /* two */ \"hooks\": {\n    \"Stop\": [ // none\n    ]\n  } // end\n}\n// bottom",
	"trailing commas":       "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": []},\n    ],\n  },\n}\n",
	"comma after a comment": "{\n  \"a\": 1 /* one */ ,\n}\n",
	"hooks first":           "{\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\"}]}]},\n  \"z\": null\n}",
	"blank lines":           "{\n\n  \"a\": 1,\n\n\n  \"b\": 2\n\n}\n",
	"duplicate hooks":       `{"hooks": 1, "hooks": {"Stop": []}}`,
	"alike but not ours":    `{"hooks":{"Stop":[{"hooks":[{"command":"/opt/outliver hook claude"},{"command":"outlive hook codex"},{"command":"echo outlive hook claude"}]}]}}`,
}

func TestRemoveGivesBackEveryByte(t *testing.T) {
	for _, v := range Vendors() {
		for name, before := range settingsInTheWild {
			t.Run(v.Name+"/"+name, func(t *testing.T) {
				if v.Name == "codex" && name == "alike but not ours" {
					before = strings.ReplaceAll(before, "outlive hook codex", "outlive hook gemini")
				}
				after := install(t, v, before)
				if after == before {
					t.Fatal("nothing was installed")
				}
				if again := install(t, v, after); again != after {
					t.Errorf("installed twice:\n%s", cmp.Diff(after, again))
				}
				undone, err := v.Remove([]byte(after))
				if diff := cmp.Diff(before, string(undone)); diff != "" || err != nil {
					t.Errorf("%v\n%s", err, diff)
				}
				checkMeaning(t, v, before, after)
			})
		}
	}
}

// checkMeaning compares as the CLI reads it: the old content and our hooks are both there.
func checkMeaning(t *testing.T, v *Vendor, before, after string) {
	t.Helper()
	s, err := v.Inspect([]byte(after))
	want := ours(v)
	want[0], want[1] = want[1], want[0]
	if diff := cmp.Diff(want, s.Ours); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	was, err := v.Inspect([]byte(before))
	if err != nil || was.Others != s.Others {
		t.Errorf("%d hooks of others, were %d (%v)", s.Others, was.Others, err)
	}
	a, b := decode(t, before), decode(t, after)
	delete(a, "hooks")
	delete(b, "hooks")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the rest of the settings has changed: %v, was %v", b, a)
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	standard, err := hujson.Standardize([]byte(strings.TrimPrefix(text, byteOrderMark) + "\n"))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var m map[string]any
	if err := json.Unmarshal(standard, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFileFromNothingGoesAgain(t *testing.T) {
	v := VendorNamed("codex")
	for _, before := range []string{"", "\n", " \n\t"} {
		after := install(t, v, before)
		if got, err := v.Remove([]byte(after)); err != nil || got != nil {
			t.Errorf("%q: left %q, %v", before, got, err)
		}
	}
}

// Whatever the user has changed since, removing removes our hooks and nothing else.
func TestRemoveKeepsWhatCameLater(t *testing.T) {
	v := VendorNamed("claude")
	command := `{"type": "command", "command": "/opt/outlive hook claude", "timeout": 10}`
	tests := map[string]struct{ text, want string }{
		"a group behind ours": {
			`{"hooks": {"Stop": [{"hooks": [` + command + `]}, {"hooks": [{"command": "x"}]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`,
		},
		"a hook in our group": {
			`{"hooks": {"Stop": [{"hooks": [` + command + `, {"command": "x"}]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`,
		},
		"between others": {
			`{"hooks": {"Stop": [1, {"hooks": [` + command + `]}, {"hooks": [` + command + `]}, 2]}}`,
			`{"hooks": {"Stop": [1, 2]}}`,
		},
		"an event behind ours": {
			`{"hooks": { "Stop": [ {"hooks": [` + command + `]} ], "Other": [] }}`,
			`{"hooks": { "Other": [] }}`,
		},
		"a comment in our list": {
			"{\"hooks\": { \"Stop\": [ // why\n {\"hooks\": [" + command + "]} ] }}",
			"{\"hooks\": { \"Stop\": [ // why\n  ] }}",
		},
		"quoted program": {
			`{"a": 1, "hooks": { "Stop": [ {"hooks": [{"command": "'/my tools/outlive' hook claude --home '/x y'"}]} ] }}`,
			`{"a": 1}`,
		},
		"Windows program": {
			`{"a": 1, "hooks": { "Stop": [ {"hooks": [{"command": "\"C:\\Program Files\\outlive.exe\" hook claude"}]} ] }}`,
			`{"a": 1}`,
		},
		"for PowerShell": {
			`{"a": 1, "hooks": { "Stop": [ {"hooks": [{"command": "& \"C:\\Program Files\\outlive.exe\" hook claude"}]} ] }}`,
			`{"a": 1}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := v.Remove([]byte(tt.text))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestStrangeSettingsAreLeft(t *testing.T) {
	v := VendorNamed("claude")
	for _, text := range []string{`[]`, `{`, `{"hooks": []}`, `{"hooks": {"Stop": {}}}`, `{"hooks": "x"}`, `{} {}`} {
		if got, err := v.Install([]byte(text), ours(v)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s became %q, error %v", text, got, err)
		}
	}
}

func TestInspectSeesHooksSwitchedOff(t *testing.T) {
	for vendor, text := range map[string]string{
		"claude": `{"disableAllHooks": true}`, "gemini": `{"hooksConfig": {"enabled": false}}`,
	} {
		s, err := VendorNamed(vendor).Inspect([]byte(text))
		if err != nil || !s.Off {
			t.Errorf("%s: off %v, error %v", vendor, s.Off, err)
		}
		if s, _ := VendorNamed(vendor).Inspect([]byte(`{"hooksConfig": {"enabled": true}, "disableAllHooks": false}`)); s.Off {
			t.Errorf("%s: off, although nothing is", vendor)
		}
	}
}

func TestGeminiCountsInMilliseconds(t *testing.T) {
	v := VendorNamed("gemini")
	got, err := v.Install(nil, []Entry{{"AfterAgent", v.HookCommand("outlive"), 10 * time.Second}})
	if err != nil || !strings.Contains(string(got), `"timeout": 10000`) {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestEntriesFollowTheVersion(t *testing.T) {
	tests := []struct {
		vendor, version string
		want            int
		left            string
	}{
		{"claude", "2.1.330 (Claude Code)", 7, ""},
		{"claude", "2.1.77 (Claude Code)", 6, "StopFailure"},
		{"claude", "2.0.44", 5, agentcli.PermissionRequest},
		{"claude", "1.0.20", 0, "Stop"},
		{"codex", "codex-cli 0.169.0", 4, ""},
		{"codex", "codex-cli 0.123.9", 0, agentcli.PermissionRequest},
		{"gemini", "0.61.0\n", 5, ""},
		{"gemini", "0.25.2", 0, "AfterAgent"},
	}
	for _, tt := range tests {
		version, ok := ParseVersion(tt.version)
		if !ok {
			t.Errorf("%s: no version found", tt.version)
		}
		entries, old := VendorNamed(tt.vendor).Entries(version, EntryOptions{Command: "outlive hook x", AskFlags: "--ask"})
		if len(entries) != tt.want || !strings.Contains(strings.Join(old, " "), tt.left) {
			t.Errorf("%s %s: %d hooks, left out %v", tt.vendor, tt.version, len(entries), old)
		}
		for _, e := range entries {
			waits := e.Event == agentcli.PermissionRequest
			if waits != (e.Timeout == 600*time.Second) || waits != strings.HasSuffix(e.Command, "--ask") {
				t.Errorf("%s: %+v", tt.vendor, e)
			}
		}
	}
	if v, ok := ParseVersion("command not found"); ok {
		t.Errorf("found version %s", v)
	}
}

func TestSettingsPath(t *testing.T) {
	env := map[string]string{}
	of := func(name string) string { return env[name] }
	check := func(vendor, project, want string) {
		t.Helper()
		if got := strings.ReplaceAll(VendorNamed(vendor).SettingsPath("/home/ada", of, project), `\`, "/"); got != want {
			t.Errorf("%s in %q: %s, want %s", vendor, project, got, want)
		}
	}
	check("claude", "", "/home/ada/.claude/settings.json")
	check("claude", "/shop", "/shop/.claude/settings.local.json")
	check("codex", "", "/home/ada/.codex/hooks.json")
	check("codex", "/shop", "/shop/.codex/hooks.json")
	check("gemini", "", "/home/ada/.gemini/settings.json")
	env["CLAUDE_CONFIG_DIR"], env["CODEX_HOME"], env["GEMINI_CLI_HOME"] = "/c", "/x", "/g"
	check("claude", "", "/c/settings.json")
	check("codex", "", "/x/hooks.json")
	check("gemini", "", "/g/.gemini/settings.json")
}

func FuzzInstallIsUndone(f *testing.F) {
	for _, text := range settingsInTheWild {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := VendorNamed("claude")
		base, err := v.Remove([]byte(text))
		if err != nil || blank(base) {
			return
		}
		after, err := v.Install(base, ours(v))
		if err != nil {
			if errors.Is(err, ErrUnsafe) {
				t.Fatalf("%v: %q", err, text)
			}
			return
		}
		if _, err := hujson.Parse(after); err != nil && !strings.Contains(string(base), "//") && !strings.HasPrefix(string(base), byteOrderMark) {
			t.Fatalf("no JSON any more: %q", after)
		}
		undone, err := v.Remove(after)
		if err != nil || string(undone) != string(base) {
			t.Fatalf("%v: %q, was %q", err, undone, base)
		}
	})
}
