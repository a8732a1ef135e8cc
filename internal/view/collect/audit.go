package collect

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// lineLimit is the longest line, in bytes. A longer one is none: where a machine has lost its power, a file may have a hole.
const lineLimit = 128 << 10

// readAudit reads the events of the last day from audit logs. What cannot be read is left out: the running outlives tell of
// what happens from now on.
func readAudit(paths []string, now time.Time) (list []overview.Event) {
	readLogs(paths, now.Add(-overview.Day), func(l Logged) {
		if l.Level != "DEBUG" {
			list = append(list, l.Event)
		}
	})
	slices.SortStableFunc(list, func(a, b overview.Event) int { return a.At.Compare(b.At) })
	return list[max(0, len(list)-eventsKept):]
}

// Logged is an event of an audit log.
type Logged struct {
	overview.Event
	Path string // of the log
	Line []byte
}

// Since reads the events of audit logs from that time on, the oldest first. What cannot be read is left out.
func Since(paths []string, since time.Time) (list []Logged) {
	readLogs(paths, since, func(l Logged) {
		l.Line = slices.Clone(l.Line)
		list = append(list, l)
	})
	slices.SortStableFunc(list, func(a, b Logged) int { return a.At.Compare(b.At) })
	return list
}

// readLogs hands on the events of audit logs from a time on. A line is valid until the next one.
func readLogs(paths []string, since time.Time, each func(Logged)) {
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && !st.ModTime().Before(since) {
			readLog(path, since, each)
		}
	}
}

func readLog(path string, since time.Time, each func(Logged)) {
	f, err := atomicfile.OpenShared(path, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, lineLimit)
	for {
		line, err := in.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if line = bytes.TrimRight(line, "\r\n"); !tooLong {
			if e, wrong := overview.ParseEvent(line); wrong == nil && !e.At.Before(since) {
				each(Logged{e, path, line})
			}
		}
		if err != nil {
			return
		}
	}
}
