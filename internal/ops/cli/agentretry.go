package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// retrySettings are what an agent that nobody attends is given, so that its CLI itself waits out what passes. What its owner has set in
// --env or in the environment stays, and so does how often it tries again.
func retrySettings(kind registry.Kind, starts bool, env []string) []setting {
	theirs := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(env, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	}
	p := agentcli.Of(kind).Patience
	if p.Variable == "" || !starts || theirs(p.Variable) || p.Unless != "" && theirs(p.Unless) {
		return nil
	}
	return []setting{{[]string{"start", "env", p.Variable}, p.Value}}
}

// patient is a command of an agent that is declared with what makes its CLI patient, by the settings that the agent has.
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
