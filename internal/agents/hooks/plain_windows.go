package hooks

import (
	"fmt"
	"os"
)

// private checks that folder is a folder. Only its user can write there because it is in the user's profile.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", folder)
	}
	return nil
}
