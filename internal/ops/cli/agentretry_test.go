package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// An agent that is started without a person gets the retry settings of its CLI, unless its owner has said something about them.
func TestRetrySettings(t *testing.T) {
	const watchdog = "CLAUDE_CODE_RETRY_WATCHDOG"
	for name, test := range map[string]struct {
		kind   registry.Kind
		starts bool
		env    []string
		system string // a variable of the environment
		want   int
	}{
		"claude":                         {kind: agentcli.Claude, starts: true, want: 1},
		"another variable":               {kind: agentcli.Claude, starts: true, env: []string{"LANG=C"}, want: 1},
		"only watched":                   {kind: agentcli.Claude},
		"another CLI":                    {kind: agentcli.Codex, starts: true},
		"its owner wants none":           {kind: agentcli.Claude, starts: true, env: []string{watchdog + "=0"}},
		"its owner has said how often":   {kind: agentcli.Claude, starts: true, env: []string{"CLAUDE_CODE_MAX_RETRIES=3"}},
		"its owner's environment has it": {kind: agentcli.Claude, starts: true, system: watchdog},
	} {
		t.Run(name, func(t *testing.T) {
			if test.system != "" {
				t.Setenv(test.system, "0")
			}
			got := retrySettings(test.kind, test.starts, test.env)
			if len(got) != test.want || test.want == 1 && (got[0].value != "1" || got[0].key[2] != watchdog) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Codex is told how often to ask a provider of the owner's own, and nothing of one that it has built in.
func TestPatientCodex(t *testing.T) {
	const own = "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\n"
	for name, test := range map[string]struct {
		settings string // "": there are none
		command  string
		want     string // behind the program
	}{
		"its own provider":              {own, "codex exec go", "-c model_providers.mine.stream_max_retries=11 exec go"},
		"a path":                        {own, "/usr/bin/codex", "-c model_providers.mine.stream_max_retries=11"},
		"no settings":                   {"", "codex exec go", "exec go"},
		"no provider":                   {"model = \"m\"\n[model_providers.mine]\nname = \"mine\"\n", "codex exec go", "exec go"},
		"a provider that is built in":   {"model_provider = \"openai\"\n", "codex exec go", "exec go"},
		"set by its owner":              {own + "stream_max_retries = 2\n", "codex exec go", "exec go"},
		"set in the command":            {own, "codex -c model_providers.mine.stream_max_retries=2 exec go", "-c model_providers.mine.stream_max_retries=2 exec go"},
		"another one in the command":    {own, "codex exec -c model_provider=other go", "exec -c model_provider=other go"},
		"a profile":                     {own, "codex --profile night exec go", "--profile night exec go"},
		"a profile, in one word":        {own, "codex --profile=night exec go", "--profile=night exec go"},
		"a profile of the settings":     {"profile = \"night\"\n" + own, "codex exec go", "exec go"},
		"settings that cannot be read":  {"model_provider = ", "codex exec go", "exec go"},
		"a name that needs quotes":      {"model_provider = \"a.b\"\n[model_providers.\"a.b\"]\nname = \"x\"\n", "codex exec go", "exec go"},
		"a command that only starts it": {own, "npx codex exec go", "codex exec go"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.settings != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(test.settings), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := strings.Fields(test.command)
			was := slices.Clone(command)
			f := addFlags{env: []string{"CODEX_HOME=" + dir}}
			if got := strings.Join(f.patient(agentcli.Codex, command)[1:], " "); got != test.want {
				t.Errorf("%q", got)
			}
			if !slices.Equal(command, was) {
				t.Errorf("the command itself was changed: %q", command)
			}
		})
	}
	if got := (&addFlags{}).patient(agentcli.Codex, nil); got != nil {
		t.Errorf("without a command: %q", got)
	}
}
