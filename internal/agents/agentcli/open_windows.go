package agentcli

import (
	"fmt"
	"io/fs"
	"os"
)

// openNoFollow opens a file that is not a link. Windows has no flag for it: between the look and the opening there is a
// moment, in which only somebody who may write there already can change it.
func openNoFollow(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		return nil, fmt.Errorf("open %s: %w", path, errNotRegular)
	}
	return os.Open(path)
}
