package cli

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// slimAfter is when the pages that only the start needed are given back.
const slimAfter = 700 * time.Millisecond

// slimLater gives back what only the start needed: freed memory, and the pages of our own binary. The few that relaying
// uses come back with their next use; an idle outlive then holds a fifth of what its start touched.
func slimLater() (cancel func()) {
	t := time.AfterFunc(slimAfter, func() {
		debug.FreeOSMemory()
		for _, m := range ownPages() {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.size, unix.MADV_DONTNEED) // only advice
		}
	})
	return func() { t.Stop() }
}

// mapping is a range of our own addresses, in bytes.
type mapping struct{ start, size uintptr }

// ownPages returns the read-only mappings of our own binary.
func ownPages() []mapping {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []mapping
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != exe || strings.Contains(fields[1], "w") {
			continue // a written page of a private mapping would be lost
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && end > start {
			out = append(out, mapping{uintptr(start), uintptr(end - start)})
		}
	}
	return out
}
