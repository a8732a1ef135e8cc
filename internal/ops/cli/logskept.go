package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

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

// show copies the file and those rotated away from it, after a line on stderr that says what they are.
func (l keptLog) show(streams streams, name string) error {
	fmt.Fprintf(streams.err, "outlive: %s is not running; this is what is kept of its last run (PID %d, last written %s): %s\n",
		name, l.pid, l.ended.Format(time.DateTime), l.path)
	out := logScreen(streams.out)
	for _, path := range append(logline.Older(l.path), l.path) {
		if err := copyFile(out, path); err != nil {
			return fail(exitFailure, "logs %s: %w", name, err)
		}
	}
	return nil
}
