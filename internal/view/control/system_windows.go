package control

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// shortTemp is a directory with a short path that is the user's alone: the profile. In C:\Windows\Temp others can make folders, too.
func shortTemp() string {
	if dir, err := windows.KnownFolderPath(windows.FOLDERID_Profile, windows.KF_FLAG_DEFAULT); err == nil {
		return dir
	}
	return os.TempDir()
}

// ours is always true: the user's directories are private by inheritance here.
func ours(fs.FileInfo) bool { return true }

// othersWrite is always false: the mode says nothing here.
func othersWrite(fs.FileInfo) bool { return false }

// refused reports whether a connection failed because nobody listens.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// protect has nothing to do: the directory is the user's.
func protect(string) error { return nil }
