package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

func newLogs(io streams) *cobra.Command {
	var follow bool
	var on hostFlags
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show a server's stderr, kept across its restarts",
		Long: `Show what the server NAME has written to its stderr since its outlive started, or what is kept of its last run if none
runs. Where a process ended unexpectedly or was started again there is a line that begins with [outlive]. The file itself is named by "outlive status --json" (log_path). A server behind a gateway is GATEWAY/SERVER, or just SERVER
where nothing else is called so. On a terminal what would drive it is escaped; into a file or a pipe the bytes go as they are.

EXIT STATUS
  0  shown
  1  no such server, and nothing is kept of an earlier run
  2  the name is ambiguous`,
		Args:              takesRunning,
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			if on.given() {
				set, name, err := on.named(args[0], nil)
				if err != nil {
					return err
				}
				return logsThere(cmd.Context(), io, set, name, follow)
			}
			instance, err := findInstance(args[0])
			far := elsewhere(err)
			if _, gone := errors.AsType[*notRunning](err); gone {
				if err = showLastRun(io, args[0], err); err == nil {
					return nil
				}
			}
			if far {
				if set, name, there := on.named(args[0], err); there == nil {
					return logsThere(cmd.Context(), io, set, name, follow)
				}
			}
			if err != nil {
				return err
			}
			if follow {
				err = followLog(cmd.Context(), logScreen(io.out), instance)
			} else {
				err = instance.Logs(cmd.Context(), logScreen(io.out), false)
			}
			if err != nil {
				return fail(exitFailure, "logs %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	on.define(cmd)
	return cmd
}

// followLog shows a server's stderr until ctx or its outlive ends. An outlive that has become another version goes on with the same
// files: only what was not shown yet is.
func followLog(ctx context.Context, to io.Writer, i control.Instance) error {
	var shown int
	for {
		w := &behind{to: to, skip: shown}
		err := i.Logs(ctx, w, true)
		shown = max(shown, w.came)
		if err != nil || ctx.Err() != nil || !stillThere(ctx, i) {
			return err
		}
	}
}

// behind passes on what comes behind so many bytes.
type behind struct {
	to   io.Writer
	skip int
	came int
}

func (b *behind) Write(p []byte) (int, error) {
	known := min(max(0, b.skip-b.came), len(p))
	b.came += len(p)
	if known == len(p) {
		return len(p), nil
	}
	n, err := b.to.Write(p[known:])
	return known + n, err
}

// logScreen is where a server's stderr is shown: as it is, unless a terminal would obey it.
func logScreen(out *os.File) io.Writer {
	if st, err := out.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		return logline.NewScreen(out)
	}
	return out
}

// showLastRun shows the kept output of the last run of a server that does not run; missing is the error to report.
func showLastRun(io streams, name string, missing error) error {
	w, err := parseWanted(name)
	if err != nil {
		return err
	}
	last, found := w.lastLog()
	if !found {
		return fail(exitFailure, "%w; nothing is kept of an earlier run", missing)
	}
	return last.show(io, name)
}
