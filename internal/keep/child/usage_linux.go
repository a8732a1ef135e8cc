package child

import (
	"fmt"
	"os"
)

// usageLimit bounds the processes examined, for the case of a fork bomb.
const usageLimit = 4096

var pageSize = int64(os.Getpagesize())

// TreeUsage reads the usage of process pid and its living descendants from /proc, with a few system calls for each
// process and thread. It returns an error that wraps [os.ErrProcessDone] when there is no such process; descendants that
// end meanwhile are left out. Descendants whose parent has died are not found.
func TreeUsage(pid int) (Usage, error) {
	var (
		u         Usage
		r         = newProcReader()
		mostShare int64
		group     int64 // of processes, pid's
		todo      = append(make([]int, 0, 16), pid)
	)
	for i := 0; i < len(todo) && i < usageLimit; i++ {
		s, err := r.stat(todo[i])
		if i == 0 {
			if err != nil {
				return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
			}
			u.State, group = s.state, s.group
		}
		if err != nil {
			continue
		}
		// A server behind a launcher counts, too. A job of a terminal has a group of its own, and says nothing of the server.
		if s.group == group && (s.state == 'T' || s.state == 't' && u.State != 'T') {
			u.State = s.state
		}
		u.CPU += s.cpu
		if s.state == 'Z' || s.state == 'X' {
			continue // a zombie has no memory, and its children have another parent
		}
		u.Processes++
		resident, shared := r.statm(todo[i])
		u.RSS += resident - shared
		mostShare = max(mostShare, shared)
		todo = r.children(todo[i], s.threads, todo)
	}
	u.RSS += mostShare
	return u, nil
}

// statm returns resident memory and its shared part, in bytes; 0 for a process that has ended.
func (r *procReader) statm(pid int) (resident, shared int64) {
	b, err := r.read(pid, "/statm")
	if err != nil {
		return 0, 0
	}
	_, b = nextWord(b)
	word, b := nextWord(b)
	resident, _ = parseCount(word)
	word, _ = nextWord(b)
	shared, _ = parseCount(word)
	return resident * pageSize, min(shared, resident) * pageSize // the kernel keeps two counters, each a little late
}
