package watch

import (
	"strings"

	"golang.org/x/sys/unix"
)

// mostEntries is how many files and directories are watched by events; more are polled: kqueue needs an open descriptor for
// each.
const mostEntries = 4096

// eventless reports whether dir's file system does not report all changes.
func eventless(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return st.Flags&unix.MNT_LOCAL == 0 || strings.Contains(name, "fuse") || strings.Contains(name, "virtiofs")
}
