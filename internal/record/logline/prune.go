package logline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defaults of [Prune].
const (
	PruneTotal = 200 << 20           // bytes
	PruneAge   = 14 * 24 * time.Hour // since the last write
)

// Prune removes log files (*.log) in dir that were last written more than age before now, and then the ones written
// least recently until at most total bytes are left. A file that is inUse is never removed: its writer would go on to write
// where nobody reads.
func Prune(dir string, now time.Time, total int64, age time.Duration, inUse func(path string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune logs: %w", err)
	}
	type logFile struct {
		path    string
		written time.Time
		size    int64
	}
	var files []logFile
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if inUse(path) {
			total -= info.Size()
			continue
		}
		files = append(files, logFile{path, info.ModTime(), info.Size()})
	}
	slices.SortFunc(files, func(a, b logFile) int { return b.written.Compare(a.written) })
	var failed error
	for _, f := range files {
		total -= f.size
		if total >= 0 && now.Sub(f.written) <= age {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("prune logs: %w", err))
		}
	}
	return failed
}
