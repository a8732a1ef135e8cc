package collect

import (
	"bufio"
	"io"
	"os"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	auditTail = 8 << 20 // how much of the end of one audit log is read, in bytes
	lineLimit = 128 << 10
)

// readAudit reads the events of the last day from audit logs. What cannot be read is left out: the running outlives tell of
// what happens from now on.
func readAudit(paths []string, now time.Time) (list []overview.Event) {
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || now.Sub(st.ModTime()) > overview.Day {
			continue
		}
		list = append(list, readTail(path, now)...)
	}
	slices.SortStableFunc(list, func(a, b overview.Event) int { return a.At.Compare(b.At) })
	return list[max(0, len(list)-eventsKept):]
}

func readTail(path string, now time.Time) (list []overview.Event) {
	f, err := atomicfile.OpenShared(path, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > auditTail {
		_, _ = f.Seek(-auditTail, io.SeekEnd) // the first line is cut then, and passed over
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		if e, err := overview.ParseEvent(lines.Bytes()); err == nil && now.Sub(e.At) <= overview.Day && e.Level != "DEBUG" {
			list = append(list, e)
		}
	}
	return list
}
