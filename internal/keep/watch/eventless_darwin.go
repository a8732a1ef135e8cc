package watch

import (
	"strings"

	"golang.org/x/sys/unix"
)

// watchBudget is how many files and directories may be watched by events: kqueue needs an open descriptor for each.
const watchBudget = 4096

// eventless returns the name of dir's file system if it does not report all changes, otherwise "".
func eventless(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if st.Flags&unix.MNT_LOCAL == 0 || strings.Contains(name, "fuse") || strings.Contains(name, "virtiofs") {
		return name
	}
	return ""
}
