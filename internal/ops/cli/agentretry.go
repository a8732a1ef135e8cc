package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// retrySettings make the CLI of an unattended agent itself wait for temporary failures. Values that its owner has set in
// --env or in the environment are kept, including the number of retries.
func retrySettings(kind registry.Kind, starts bool, env []string) []agentSetting {
	theirs := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(env, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	}
	p := agentcli.Of(kind).Patience
	if p.Variable == "" || !starts || theirs(p.Variable) || p.Unless != "" && theirs(p.Unless) {
		return nil
	}
	return []agentSetting{{[]string{"start", "env", p.Variable}, p.Value}}
}

// patient adds the flags that make the CLI wait to the agent's command.
func (f *addFlags) patient(kind registry.Kind, command []string) []string {
	cli := agentcli.Of(kind)
	if cli.Patience.Command == nil {
		return command
	}
	home, _ := os.UserHomeDir() // without one, the variable may still say where
	return cli.Patience.Command(command, cli.Place.In(home, func(name string) string {
		for _, given := range f.env {
			if value, ok := strings.CutPrefix(given, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	}))
}
