//go:build unix

package agentrun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketLimit is the longest path of a socket, in bytes, that every system takes: macOS has 104 with the final zero.
const socketLimit = 103

// listenAt makes the socket for joining a terminal, accessible by its user only. If the path is too long for a socket, a
// short one below the temporary directory is used; at is its path. A dead wrapper's socket is replaced.
func listenAt(path string) (l net.Listener, at string, err error) {
	if at = path; len(at) > socketLimit {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", os.Getuid(), path))
		at = filepath.Join(os.TempDir(), "outlive-"+hex.EncodeToString(sum[:8]), "tty")
	}
	if err := privateDir(filepath.Dir(at)); err != nil {
		return nil, "", fmt.Errorf("listen at %s: %w", at, err)
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("listen at %s: %w", at, err)
	}
	if l, err = net.Listen("unix", at); err != nil {
		return nil, "", err
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return nil, "", errors.Join(fmt.Errorf("listen at %s: %w", at, err), l.Close())
	}
	return l, at, nil
}

// privateDir makes a directory that is the user's alone, or makes sure that it is.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not this user's own directory", dir)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}
