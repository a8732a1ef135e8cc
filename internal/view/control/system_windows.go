package control

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// shortTemp is a temporary directory with a short path.
const shortTemp = `C:\Windows\Temp`

// ours is always true: the user's directories are private by inheritance here.
func ours(fs.FileInfo) bool { return true }

// othersWrite is always false: the mode says nothing here.
func othersWrite(fs.FileInfo) bool { return false }

// refused reports whether a connection failed because nobody listens.
func refused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }

// protect has nothing to do: the directory is the user's.
func protect(string) error { return nil }
