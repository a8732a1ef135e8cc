package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

const agentLogsLong = `Show what an agent has written to its stdout and stderr: that of its starts by the monitor (outlive agent start, restart,
resume, and recoveries), and of outlive agent run --keep. The lines that begin with [outlive] say when it was started and how
it ended. It is kept in HOME/log/NAME, 10 MiB a file, five old files, 14 days. No secret is taken out of it.

It is shown as text, wherever it goes: colours and other control sequences are left out, and of an agent that draws on its terminal
each line is shown when it leaves the screen at the top, the rest of the screen at the end or, with -f, when it has not changed for
two seconds. --raw shows the bytes as they were written, which a terminal obeys: with agents that you do not trust, only into a
file. To see the screen as it is now: outlive agent attach NAME --read-only.

EXIT STATUS
  0  shown
  1  no such agent, or nothing is kept of its output
  2  a mistake in the command line`

func newAgentLogs(io streams) *cobra.Command {
	var home string
	var follow, raw bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the output of an agent that the monitor has started, as text",
		Long:  agentLogsLong,
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showAgentLog(cmd.Context(), io, home, args[0], follow, raw)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	cmd.Flags().BoolVar(&raw, "raw", false, "the bytes as the agent has written them, control sequences included")
	defineHome(cmd.Flags(), &home)
	return cmd
}

func showAgentLog(ctx context.Context, streams streams, home, name string, follow, raw bool) (err error) {
	o, r, err := readRegistry(home)
	if err != nil {
		return err
	}
	if _, err := declaredAgent(o, r, name); err != nil {
		return err
	}
	path := agentrun.LogPath(o.Home, name)
	older := rotation.Older(path)
	_, err = os.Stat(path)
	if missing := errors.Is(err, fs.ErrNotExist); missing && len(older) == 0 && !follow {
		return fail(exitFailure, "%s: nothing is kept of its output: no monitor has started it yet; start it: outlive agent start %s%s", name, name, homeFlag(o.Home))
	} else if err != nil && !missing {
		return fail(exitFailure, "logs %s: %w", name, err)
	}
	var out io.Writer = streams.out
	var settle func() error
	if !raw {
		text := agentrun.NewText(logline.NewScreen(streams.out))
		defer func() {
			if end := text.Close(); err == nil && end != nil {
				err = fail(exitFailure, "logs %s: %w", name, end)
			}
		}()
		out, settle = text, text.Settle
	}
	if err := copyLog(ctx, out, path, func() bool { return follow }, settle); err != nil {
		return fail(exitFailure, "logs %s: %w", name, err)
	}
	return nil
}
