package atomicfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file belongs to its creator, and gets the access list of its directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
