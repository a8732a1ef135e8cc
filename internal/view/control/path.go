package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	suffix = ".sock"
	// pathLimit is the longest socket path, in bytes, that every system takes: macOS has 104 with the final zero.
	pathLimit = 103
	// nameLimit is the longest name, in bytes, that a file name shows.
	nameLimit = 40
)

// socketFile is the file of the socket of name and pid.
func socketFile(name string, pid int) string {
	return fileName(name) + "." + strconv.Itoa(pid) + suffix
}

// PathIn returns where a socket called file lives that belongs into dir: there, or in a short directory that stands for dir when that path
// would be too long for the system. Discover looks in both.
func PathIn(dir, file string) string {
	if path := filepath.Join(dir, file); len(path) <= pathLimit {
		return path
	}
	return filepath.Join(fallbackDir(dir), file)
}

// fallbackDir is a short directory that stands for dir: named after a hash of dir and the user, under the temporary
// directory, or a shorter one if that is long too: /tmp, on Windows the profile.
func fallbackDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", os.Getuid(), dir))
	short := "outlive-" + hex.EncodeToString(sum[:6])
	base := os.TempDir()
	if len(base)+len(short)+nameLimit+len("/.4294967295.sock/") > pathLimit {
		base = shortTemp()
	}
	return filepath.Join(base, short)
}

// fileName is name as a file name shows it: bytes other than letters, digits, '_' and '-' become %XX; a long name is
// cut and ends in a hash.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	s := b.String()
	if len(s) > nameLimit {
		sum := sha256.Sum256([]byte(name))
		s = s[:nameLimit-9]
		if at := strings.LastIndexByte(s, '%'); at > len(s)-3 {
			s = s[:at] // no escape is cut in two
		}
		s += "~" + hex.EncodeToString(sum[:4])
	}
	return s
}

// parseFile is the inverse of [socketFile]. A cut name comes back cut.
func parseFile(file string) (name string, pid int, ok bool) {
	rest, ok := strings.CutSuffix(file, suffix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot <= 0 {
		return "", 0, false
	}
	pid, err := strconv.Atoi(rest[dot+1:])
	if err != nil || pid <= 0 {
		return "", 0, false
	}
	name, err = url.PathUnescape(rest[:dot])
	return name, pid, err == nil
}

// ErrForeign is returned when a directory or a socket in it belongs to somebody else, or may be changed by others.
var ErrForeign = errors.New("not this user's alone")

// MakeDir makes dir, private to the user. In a place anybody may write to, such as /tmp, it refuses a directory or a
// link that somebody else put there, with an error that wraps [ErrForeign].
func MakeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := owned(dir)
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// owned returns what is known of a directory that is the user's, and no link.
func owned(dir string) (fs.FileInfo, error) {
	st, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() || !ours(st) {
		return nil, fmt.Errorf("%s: %w", dir, ErrForeign)
	}
	return st, nil
}

// checkDir says why what is in a directory is not to be believed.
func checkDir(dir string) error {
	st, err := owned(dir)
	if err == nil && othersWrite(st) {
		return fmt.Errorf("%s: %w: others may write to it: chmod 700 %s", dir, ErrForeign, dir)
	}
	return err
}
