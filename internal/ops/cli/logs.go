package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/process"
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
		Annotations:       map[string]string{forOthers: "follow"},
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			if on.given() {
				return on.logs(cmd.Context(), io, args[0], follow)
			}
			instance, err := findInstance(args[0])
			if _, gone := errors.AsType[*notRunning](err); gone {
				return showLastRun(io, args[0], err)
			}
			if err != nil {
				return err
			}
			if err := showLog(cmd.Context(), io, instance, follow); err != nil {
				return fail(exitFailure, "logs %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	on.define(cmd)
	return cmd
}

// showLog shows a server's stderr from the file that its outlive writes, and with follow until that has ended. One that has become
// another version goes on with the same file.
func showLog(ctx context.Context, io streams, i control.Instance, follow bool) error {
	s, err := i.Status(ctx)
	if err != nil {
		return err
	}
	path, err := logPath(s, i.Server)
	if err != nil {
		return err
	}
	return copyLog(ctx, logScreen(io.out), path, func() bool { return follow && ofTheLiving(path) }, nil)
}

// logPath is the file with the stderr of a server of the outlive that stands so. It may be omitted if there is only one.
func logPath(s control.Status, server string) (string, error) {
	if s.Run() {
		if s.LogPath == "" {
			return "", errors.New("with --mode inherit its stderr is outlive's own: outlive does not see it, its client has it")
		}
		return s.LogPath, nil
	}
	var names []string
	for _, m := range s.Servers {
		if m.Name == server || server == "" && len(s.Servers) == 1 {
			return m.LogPath, nil
		}
		names = append(names, s.Name+"/"+m.Name)
	}
	return "", fmt.Errorf("say which of its servers: %s", cmp.Or(strings.Join(names, ", "), "it does not tell of any now"))
}

// logScreen is where a server's stderr is shown: as it is, unless a terminal would obey it.
func logScreen(out *os.File) io.Writer {
	if st, err := out.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		return logline.NewScreen(out)
	}
	return out
}

// showLastRun copies the kept stderr of the last run of a server that does not run, and what was rotated away from it, after a line on
// stderr that says what it is. missing is the error to report if there is none.
func showLastRun(streams streams, name string, missing error) error {
	w, err := parseWanted(name)
	if err != nil {
		return err
	}
	last, found := w.lastLog()
	if !found {
		return fail(exitFailure, "%w; nothing is kept of an earlier run", missing)
	}
	fmt.Fprintf(streams.err, "outlive: %s is not running; this is what is kept of its last run (PID %d, last written %s): %s\n",
		name, last.pid, last.ended.Format(time.DateTime), last.path)
	if err := copyLog(context.Background(), logScreen(streams.out), last.path, func() bool { return false }, nil); err != nil {
		return fail(exitFailure, "logs %s: %w", name, err)
	}
	return nil
}

// keptLog is the file with the stderr of one run of a server.
type keptLog struct {
	path  string
	pid   int // of its outlive
	ended time.Time
}

const keptSuffix = ".stderr.log"

// lastLog finds what is kept of the last run of a server.
func (w wanted) lastLog() (last keptLog, found bool) {
	for _, dir := range slices.Compact([]string{stateDir(), usualStateDir()}) {
		entries, err := os.ReadDir(filepath.Join(dir, "log"))
		if err != nil {
			continue // nothing is kept there
		}
		for _, e := range entries {
			log, pid, isLog := logOf(e.Name())
			if !isLog || !e.Type().IsRegular() || w.pid != 0 && w.pid != pid || !w.names(log) {
				continue
			}
			st, err := e.Info()
			if err != nil || st.ModTime().Before(last.ended) {
				continue
			}
			last, found = keptLog{filepath.Join(dir, "log", e.Name()), pid, st.ModTime()}, true
		}
	}
	return last, found
}

// logOf takes apart the name of a file with a server's stderr. log is what the server is called there, pid that of its outlive.
func logOf(file string) (log string, pid int, ok bool) {
	rest, ok := strings.CutSuffix(file, keptSuffix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot <= 0 {
		return "", 0, false
	}
	pid, err := strconv.Atoi(rest[dot+1:])
	return rest[:dot], pid, err == nil
}

// ofTheLiving reports whether the outlive that has opened a log goes on, however long it has written nothing to it.
func ofTheLiving(path string) bool {
	_, pid, ok := logOf(filepath.Base(path))
	if !ok {
		return false
	}
	_, err := process.System{}.Look(pid)
	return err == nil
}

// names reports whether a log of that name is one of what is wanted: NAME, or GATEWAY.SERVER of a server behind a gateway.
func (w wanted) names(log string) bool {
	if w.server != "" {
		return log == w.name+"."+w.server
	}
	return log == w.name || strings.HasSuffix(log, "."+w.name)
}
