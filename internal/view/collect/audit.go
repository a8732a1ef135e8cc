package collect

import (
	"bufio"
	"bytes"
	"errors"
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

// Logged is an event of an audit log.
type Logged struct {
	overview.Event
	Path string // of the log
	Line []byte
}

// Since reads the events of audit logs from that time on, the oldest first. What cannot be read is left out.
func Since(paths []string, since time.Time) (list []Logged) {
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || st.ModTime().Before(since) {
			continue
		}
		readEnd(path, 0, func(e overview.Event, line []byte) {
			if !e.At.Before(since) {
				list = append(list, Logged{e, path, slices.Clone(line)})
			}
		})
	}
	slices.SortStableFunc(list, func(a, b Logged) int { return a.At.Compare(b.At) })
	return list
}

func readTail(path string, now time.Time) (list []overview.Event) {
	readEnd(path, auditTail, func(e overview.Event, _ []byte) {
		if now.Sub(e.At) <= overview.Day && e.Level != "DEBUG" {
			list = append(list, e)
		}
	})
	return list
}

// readEnd reads the last bytes of an audit log; 0: all of it. A line is valid until the next one. One that is too long is none: where a
// machine has lost its power, a file may have a hole.
func readEnd(path string, most int64, each func(e overview.Event, line []byte)) {
	f, err := atomicfile.OpenShared(path, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && most > 0 && st.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd) // the first line is cut then, and passed over
	}
	in := bufio.NewReaderSize(f, lineLimit)
	for {
		line, err := in.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if line = bytes.TrimRight(line, "\r\n"); !tooLong {
			if e, wrong := overview.ParseEvent(line); wrong == nil {
				each(e, line)
			}
		}
		if err != nil {
			return
		}
	}
}
