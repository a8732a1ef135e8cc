package child

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// slimAfter is how long the keeper must have had nothing to do until it gives back what only its start needed.
const slimAfter = time.Second

// manyOrders is from how many on the heap is collected, too: before that a collection needs more memory than it frees.
const manyOrders = 30

// slim gives back what the keeper's start needed.
func slim(orders int) {
	if orders >= manyOrders {
		debug.FreeOSMemory()
	}
	ReleaseBinary()
}

// ReleaseBinary gives back the pages of our own binary, most of which package initialisation alone has touched. The few
// that are used come back from the page cache.
func ReleaseBinary() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(readProc("/proc/self/maps", make([]byte, 8192)))) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != exe || strings.Contains(fields[1], "w") {
			continue // a written page of a private mapping would be lost
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && end > start {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED) // only advice
		}
	}
}
