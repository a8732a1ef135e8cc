package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/record/logline"
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
	older := logline.Older(path)
	_, err = os.Stat(path)
	if missing := errors.Is(err, fs.ErrNotExist); missing && len(older) == 0 && !follow {
		return fail(exitFailure, "%s: nothing is kept of its output: no monitor has started it yet; start it: outlive agent start %s%s", name, name, homeFlag(o.Home))
	} else if err != nil && !missing {
		return fail(exitFailure, "logs %s: %w", name, err)
	}
	var out io.Writer = streams.out
	settle := func() error { return nil }
	if !raw {
		text := agentrun.NewText(logline.NewScreen(streams.out))
		defer func() {
			if end := text.Close(); err == nil && end != nil {
				err = fail(exitFailure, "logs %s: %w", name, end)
			}
		}()
		out, settle = text, text.Settle
	}
	for _, path := range older {
		if err := copyFile(out, path); err != nil {
			return fail(exitFailure, "logs %s: %w", name, err)
		}
	}
	if err := copyGrowing(ctx, out, path, follow, settle); err != nil {
		return fail(exitFailure, "logs %s: %w", name, err)
	}
	return nil
}

// A followed file is checked this often, and its output settles after this quiet time.
const (
	lookForMore = 200 * time.Millisecond
	settled     = 2 * time.Second
)

// copyGrowing copies a file that another process appends to, and with follow later additions, until ctx ends. After a
// rotation it continues with the new file. settle is called after a quiet time.
func copyGrowing(ctx context.Context, out io.Writer, path string, follow bool, settle func() error) error {
	var file *os.File
	defer func() { _ = file.Close() }() // nil is allowed
	last, open := time.Now(), true      // when something came; whether that has yet to settle
	for {
		next, n, err := copyNew(out, file, path)
		another := next != file
		file = next
		if err != nil {
			return err
		}
		if n > 0 {
			last, open = time.Now(), true
		}
		if another && file != nil {
			continue
		}
		if !follow {
			return nil
		}
		if open && time.Since(last) >= settled {
			if err := settle(); err != nil {
				return err
			}
			open = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookForMore):
		}
	}
}

// copyNew copies what is new in file, and returns the file to read next: another one after a rotation, nil while there is none.
func copyNew(out io.Writer, file *os.File, path string) (next *os.File, n int64, err error) {
	rotated, err := replaced(file, path)
	if err == nil && file != nil {
		n, err = io.Copy(out, file) // also what came before it was rotated
	}
	if err != nil || !rotated {
		return file, n, err
	}
	_ = file.Close()
	if next, err = atomicfile.OpenShared(path, os.O_RDONLY, 0); errors.Is(err, fs.ErrNotExist) {
		return nil, n, nil
	}
	return next, n, err
}

// replaced reports whether the file at path is another one than the one that is open.
func replaced(file *os.File, path string) (bool, error) {
	if file == nil {
		return true, nil
	}
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !os.SameFile(open, now), err
}
