package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

const agentRunLong = `Run an agent's command and note what it shows, for outlive monitor: that it lives and how it ends, when it last wrote
something, what its terminal's title says, its last lines, and what its lines of JSON say (Claude Code's
--output-format stream-json, codex exec --json).

Every byte passes unchanged, both ways. In a terminal the agent gets a terminal of its own, elsewhere pipes (on Windows
always); that terminal can be joined by outlive agent attach. Signals go to the agent. What is seen is in HOME/run/NAME.json; the last lines in it are as the agent wrote them.

The agent finds its name in OUTLIVE_AGENT, and on Linux a socket for sd_notify in NOTIFY_SOCKET: READY=1, STATUS=…,
WATCHDOG=1 and EXTEND_TIMEOUT_USEC=… are noted, too.

Ctrl-Z reaches the agent like every key, but there is nobody in its terminal who could continue it, so it goes on.
kill -TSTP to this process suspends both.

An agent that is not declared runs all the same, with a warning: no monitor watches it.

EXIT STATUS
  the agent's; 128+n when signal n ended it
  1    the agent runs already (its PID is named), or the home cannot be written
  2    the command line is wrong
  126  the command cannot be run
  127  no such command`

// agentRunFlags are the flags of `outlive agent run`.
type agentRunFlags struct {
	home    string
	noInput bool
	pipes   bool
	term    bool
	keep    bool
}

func newAgentRun(io streams) *cobra.Command {
	var f agentRunFlags
	cmd := &cobra.Command{
		Use:         "run NAME [flags] -- COMMAND [ARGUMENT]...",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Run an agent's command, and note what it shows",
		Long:        agentRunLong,
		Example: "  outlive agent run shop -- claude\n" +
			"  outlive agent run nightly --no-input -- codex exec --json \"update the dependencies\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return fail(exitUsage, "agent run: want an agent name, --, and its command, as in: outlive agent run shop -- claude")
			}
			if err := heartbeat.ValidName(args[0]); err != nil {
				return &exitError{exitUsage, err}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return f.run(io, args[0], args[1:]) },
	}
	fl := flagsBeforeDash(cmd)
	defineHome(fl, &f.home)
	fl.BoolVar(&f.noInput, "no-input", false, "with pipes: an empty stdin instead of ours, for agents that read theirs to its end first, as codex exec does")
	fl.BoolVar(&f.keep, "keep", false, "keep the output in HOME/log/NAME as well, rotated, for outlive agent logs; what the monitor starts has this")
	fl.BoolVar(&f.term, "terminal", false, "a terminal for the agent also where there is none, for outlive agent attach; what the monitor starts has this where it needs one")
	fl.BoolVar(&f.pipes, "pipes", false, "no terminal for the agent, even in one")
	cmd.MarkFlagsMutuallyExclusive("terminal", "pipes")
	return cmd
}

func (f *agentRunFlags) run(io streams, name string, command []string) error {
	home, err := agentsHome(f.home)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	warnUnwatched(io, home, name, "-- COMMAND")
	keep := ""
	if f.keep {
		keep = agentrun.LogPath(home, name)
	}
	exit, err := agentrun.Run(agentrun.Options{
		Home: home, Agent: name, Command: command, Environ: withoutVars(os.Environ(), monitorSecrets),
		In: io.in, Out: io.out, Err: io.err, NoInput: f.noInput, Pipes: f.pipes, Terminal: f.term, Keep: keep,
	})
	var start *agentrun.StartError
	switch {
	case errors.As(err, &start):
		return &exitError{start.Code, err}
	case exit == nil:
		return &exitError{exitFailure, err}
	case exit.Code == 0 && err == nil:
		return nil
	}
	return &exitError{exit.Code, err}
}
