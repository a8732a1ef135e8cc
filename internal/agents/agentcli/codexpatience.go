package agentcli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// codexRetries is how often Codex begins an answer of its model anew, in place of 5 times within 7 seconds (measured: 0.169.0). The
// pauses double from 0.2 s on, 7 minutes in all: it gives up before the monitor takes the model for silent.
const codexRetries = 11

// patientCodex is a command that starts Codex, with codexRetries for the provider that it asks; dir is where Codex' settings are. Codex
// takes no such setting for the providers that it has built in, and refuses to start with one. Nothing is set either where the owner
// has set it, or where the command chooses what is asked.
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

// choosesCodexProvider reports an argument of Codex that may choose another provider, or says how often it is asked.
func choosesCodexProvider(arg string) bool {
	flag, _, _ := strings.Cut(arg, "=")
	return slices.Contains([]string{"-p", "--profile", "--oss", "--local-provider"}, flag) ||
		strings.Contains(arg, "model_provider") || strings.Contains(arg, "stream_max_retries")
}
