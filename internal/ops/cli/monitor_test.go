//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// supervisorsHome is a home with one project that a human has to look at.
func supervisorsHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	project := filepath.Join(home, "shop")
	if err := os.MkdirAll(filepath.Join(project, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"registry.yaml": "projects:\n  shop:\n    name: shop\n    path: " + project + "\n    status: running\n    heartbeat: '2026-01-01T00:00:00.000Z'\n" +
			"    currentPhase: 2\n    orchestratorPid: null\nlastUpdated: '2026-01-01T00:00:00.000Z'\n",
		"shop/.agents/manifest.yaml": "failures: [{error_category: integration_auth, resolution: pending, details: 'a < b & c'}]\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// The message reaches the chat through the Bot API server that is configured, after it was limited, and once.
func TestMonitorTellsAHuman(t *testing.T) {
	var mu sync.Mutex
	var got []string
	limited := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/getMe") {
			fmt.Fprint(w, `{"ok":true,"result":{"id":1,"username":"night_bot"}}`)
			return
		}
		if !limited {
			limited = true
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":1}}`)
			return
		}
		got = append(got, r.URL.Path+" "+r.FormValue("chat_id")+" "+r.FormValue("text"))
		fmt.Fprint(w, `{"ok":true,"result":{"message_id":1,"date":1,"chat":{"id":42}}}`)
	}))
	defer server.Close()
	home := supervisorsHome(t)
	t.Setenv("TELEGRAM_BOT_TOKEN", "1:secret")
	t.Setenv("TELEGRAM_CHAT_ID", "42")
	t.Setenv("TELEGRAM_API_URL", server.URL)
	out, errs := runVerb(t, "monitor", "--home", home, "--dry-run")
	if !strings.Contains(out, "execution_error [E0 human_required, high confidence]") || !strings.Contains(out, "would tell as @night_bot") || len(got) != 0 {
		t.Errorf("dry run: %s%s", out, errs)
	}
	for range 2 {
		if out, errs = runVerb(t, "monitor", "--home", home, "--once"); out != "Monitor cycle complete: 1 projects, 1 stalled, 0 recovered\n" {
			t.Errorf("said %q; %s", out, errs)
		}
	}
	want := []string{"/bot1:secret/sendMessage 42 🔴 Supervisor Escalation\n\nProject: shop\nPhase: 2\nStall Type: execution_error\n" +
		"Details: integration_auth: a < b & c; no orchestrator PID is known\nAction Taken: none: a human is needed\nRestarts: 0/3"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if strings.Contains(errs, "secret") {
		t.Errorf("the token is told: %s", errs)
	}
}

// runVerb runs a command line that succeeds.
func runVerb(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	root := newRoot(streams{in: os.Stdin, out: files[0], err: files[1]})
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%v: %v", args, err)
	}
	var texts [2]string
	for i := range files {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b)
	}
	return texts[0], texts[1]
}

// Every variable of PIV-16 has its effect, and nonsense is told with its name.
func TestMonitorEnvironment(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{
		"PIV_MONITOR_INTERVAL_MS": "60000", "PIV_HEARTBEAT_STALE_MS": "400000", "PIV_MAX_RESTART_ATTEMPTS": "5",
		"PIV_REGISTRY_PATH": "/r", "PIV_IMPROVEMENT_LOG_PATH": "/l", "PIV_SUPERVISOR_PID_PATH": "/p",
		"TELEGRAM_BOT_TOKEN": "", "TELEGRAM_CHAT_ID": "", "CLAUDE_CONFIG_DIR": "/c",
	} {
		t.Setenv(name, value)
	}
	o, err := monitorOptions(streams{out: os.Stdout, err: os.Stderr}, monitorFlags{home: home, answers: "auto", logLevel: "info"})
	if err != nil || o.Channels != nil || o.Listen != nil {
		t.Fatal(err, o.Channels)
	}
	got := []any{o.Home, o.Interval.String(), o.Stale.String(), o.Restarts, o.Registry, o.Log, o.PIDFile, o.Places[agentcli.Claude]}
	want := []any{home, "1m0s", "6m40s", 5, "/r", "/l", "/p", "/c"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"0", "-5", "15m", "99999999999"} {
		t.Setenv("PIV_MONITOR_INTERVAL_MS", bad)
		err := runMonitor(t.Context(), streams{out: os.Stdout, err: os.Stderr}, monitorFlags{home: home, answers: "auto", logLevel: "info"})
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), "PIV_MONITOR_INTERVAL_MS") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A signal that comes while the monitor is starting is an end like any other (PIV-15).
func TestTheMonitorIsEndedWhileItStarts(t *testing.T) {
	home := supervisorsHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runMonitor(ctx, streams{out: os.Stdout, err: os.Stderr}, monitorFlags{home: home, answers: "auto", logLevel: "info"}); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(filepath.Join(home, "supervisor.pid")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the PID file: %v", err)
	}
}

func TestExpandHome(t *testing.T) {
	t.Setenv("HOME", "/u")
	for given, want := range map[string]string{"~/.piv": "/u/.piv", "~": "/u", "/a/~b": "/a/~b"} {
		if got, err := expandHome(given); err != nil || got != want {
			t.Errorf("%s: %s, %v", given, got, err)
		}
	}
}

// In a group every member sees the buttons, so the permission to decide needs names.
func TestPermissionsInAGroupNeedAList(t *testing.T) {
	t.Setenv("TELEGRAM_BOT_TOKEN", "1234567:a")
	flags := monitorFlags{home: t.TempDir(), answers: "auto", logLevel: "info", permissions: true}
	for _, tt := range []struct{ chat, users, refusal string }{
		{"-100123", "", "TELEGRAM_USER_IDS"}, {"-100123", "7, 8", ""}, {"123", "", ""}, {"-100123", "ada", "not the number of a Telegram user"},
	} {
		t.Setenv("TELEGRAM_CHAT_ID", tt.chat)
		t.Setenv("TELEGRAM_USER_IDS", tt.users)
		o, err := monitorOptions(streams{out: os.Stdout, err: os.Stderr}, flags)
		if tt.refusal == "" && (err != nil || o.OpenGroup) || tt.refusal != "" && (err == nil || !strings.Contains(err.Error(), tt.refusal)) {
			t.Errorf("chat %s, users %q: %v", tt.chat, tt.users, err)
		}
	}
}

// The wrapper around an agent may be started from the shell in which the monitor's variables are set.
func TestAgentsDoNotInheritTheBotsToken(t *testing.T) {
	got := withoutVars([]string{"PATH=/bin", "TELEGRAM_BOT_TOKEN=x", "TELEGRAM_USER_IDS=1", "TELEGRAM_BOT_TOKEN_FILE=y"}, monitorSecrets)
	if d := cmp.Diff([]string{"PATH=/bin", "TELEGRAM_BOT_TOKEN_FILE=y"}, got); d != "" {
		t.Error(d)
	}
}
