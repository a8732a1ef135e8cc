package agentcli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// codexRetries is how often Codex retries a call of its model, instead of 5 times within 7 seconds (measured:
// 0.169.0). The pauses double from 0.2 s on, 7 minutes in all: it gives up before the monitor considers the model
// silent.
const codexRetries = 11

// patientCodex returns a command that starts Codex with codexRetries for its provider; dir is where Codex' settings
// are. Codex has no such setting for its built-in providers, and refuses to start with one. The command is also
// unchanged if the owner has set the number, or if the command chooses the provider.
func patientCodex(command []string, dir string) []string {
	if len(command) == 0 || filepath.Base(command[0]) != "codex" || slices.ContainsFunc(command[1:], choosesCodexProvider) {
		return command
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err != nil {
		return command
	}
	var c struct {
		Provider  string                    `toml:"model_provider"`
		Profile   string                    `toml:"profile"`
		Providers map[string]map[string]any `toml:"model_providers"`
	}
	if toml.Unmarshal(text, &c) != nil || c.Profile != "" {
		return command
	}
	const name = "stream_max_retries"
	provider, own := c.Providers[c.Provider]
	if _, set := provider[name]; set || !own || strings.ContainsAny(c.Provider, ". \"'") {
		return command
	}
	setting := "model_providers." + c.Provider + "." + name + "=" + strconv.Itoa(codexRetries)
	return slices.Insert(slices.Clone(command), 1, "-c", setting)
}

// choosesCodexProvider reports whether an argument of Codex may choose the provider, or sets the number of retries.
func choosesCodexProvider(arg string) bool {
	flag, _, _ := strings.Cut(arg, "=")
	return slices.Contains([]string{"-p", "--profile", "--oss", "--local-provider"}, flag) ||
		strings.Contains(arg, "model_provider") || strings.Contains(arg, "stream_max_retries")
}
