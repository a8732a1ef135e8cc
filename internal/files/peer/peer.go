package peer

import (
	"errors"
	"os"
)

// ErrUnknown is returned if the system does not say which user has the other end.
var ErrUnknown = errors.New("the system does not say which user the other end belongs to")

// OursOrRoots reports whether uid is the user of this process, or root, who may do everything anyway.
func OursOrRoots(uid int) bool { return uid == 0 || uid == os.Getuid() }
