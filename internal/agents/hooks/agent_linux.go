package hooks

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// look reads /proc/PID/stat (proc_pid_stat(5)): the name in parentheses, then the state, the parent, and the start as
// field 22.
func look(pid int) (l procInfo, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || from < 0 || to < from {
		return l, false
	}
	fields := bytes.Fields(text[to+1:])
	if len(fields) < 20 || bytes.ContainsAny(fields[0], "ZX") { // ended, but not yet waited for
		return l, false
	}
	l = procInfo{pid: pid, name: string(text[from+1 : to])}
	l.parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return l, false
	}
	l.start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return l, err == nil
}
