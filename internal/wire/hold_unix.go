//go:build unix

package wire

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// mapSpool maps size bytes of an unlinked temporary file. The blocks are reserved first: writing into a hole of a
// full disk would otherwise be a fatal fault instead of an error.
func mapSpool(size int) ([]byte, func([]byte), error) {
	f, err := os.CreateTemp(spoolDir(), "outlive-line-*")
	if err != nil {
		return nil, nil, fmt.Errorf("create spool: %w", err)
	}
	defer f.Close()
	_ = os.Remove(f.Name())
	if err := reserve(f, int64(size)); err != nil {
		return nil, nil, fmt.Errorf("reserve %d bytes of spool: %w", size, err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map spool: %w", err)
	}
	adviseSmall(b)
	return b, func(b []byte) { _ = unix.Munmap(b) }, nil
}

// dropPages takes whole pages of a mapping out of the process's resident memory. The file keeps what they hold.
func dropPages(b []byte, start, end int) {
	page := os.Getpagesize()
	start, end = (start+page-1)/page*page, end/page*page
	if end > start {
		_ = unix.Madvise(b[start:end], unix.MADV_DONTNEED) // only advice
	}
}

// spoolDir is where long lines are collected; /var/tmp is on a disk where /tmp is often memory.
var spoolDir = sync.OnceValue(func() string {
	if st, err := os.Stat("/var/tmp"); err == nil && st.IsDir() && unix.Access("/var/tmp", unix.W_OK) == nil {
		return "/var/tmp"
	}
	return os.TempDir()
})
