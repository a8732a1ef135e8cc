//go:build unix

package control

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// socketAt is a socket somebody listens at as an outlive would.
func socketAt(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
}

// old is a plain file that looks as if it were a socket that is left over.
func old(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("dear to somebody"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
}

func madeDir(t *testing.T) string {
	t.Helper()
	dir := shortDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What lies in the place of the short directory, where anybody may put something, is neither believed nor touched unless it is a
// directory of ours alone.
func TestDiscoverBelievesOurDirectoriesOnly(t *testing.T) {
	for name, lay := range map[string]func(t *testing.T, at string) (dir string){
		"a link": func(t *testing.T, at string) string {
			victim := madeDir(t)
			if err := os.Symlink(victim, at); err != nil {
				t.Fatal(err)
			}
			return victim
		},
		"a directory that others may write to": func(t *testing.T, at string) string {
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(at, 0o777); err != nil {
				t.Fatal(err)
			}
			return at
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			at := fallbackDir(dir)
			t.Cleanup(func() { os.RemoveAll(at) })
			in := lay(t, at)
			socketAt(t, filepath.Join(in, "made-up.4711.sock"))
			old(t, filepath.Join(in, "backup.1.sock"))
			found, err := Discover(dir)
			if err != nil || len(found) != 0 {
				t.Errorf("%+v, %v", found, err)
			}
			if _, err := os.Stat(filepath.Join(in, "backup.1.sock")); err != nil {
				t.Errorf("somebody's file: %v", err)
			}
		})
	}
}

// The directory that was asked for is not passed over in silence.
func TestDiscoverInSomebodyElsesDirectory(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(madeDir(t), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Discover(link); !errors.Is(err, ErrForeign) {
		t.Errorf("error: %v", err)
	}
}

// Only sockets are taken for instances, and removed.
func TestDiscoverLeavesPlainFilesAlone(t *testing.T) {
	dir := madeDir(t)
	file := filepath.Join(dir, "backup.1.sock")
	old(t, file)
	if err := os.Symlink(file, filepath.Join(dir, "link.2.sock")); err != nil {
		t.Fatal(err)
	}
	found, err := Discover(dir)
	if err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	for _, name := range []string{file, filepath.Join(dir, "link.2.sock")} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
}

// Who listens at a socket is asked for before anything is said to him.
func TestListenerIsOurs(t *testing.T) {
	for uid, ours := range map[int]bool{os.Getuid(): true, 0: true, 54321: false} {
		if err := listener(uid, nil); (err == nil) != ours || err != nil && !errors.Is(err, ErrForeign) {
			t.Errorf("user %d: %v", uid, err)
		}
	}
	if err := listener(0, peer.ErrUnknown); err != nil {
		t.Errorf("where the system does not say it: %v", err)
	}
	if err := listener(os.Getuid(), errors.New("other")); err == nil {
		t.Error("a socket that cannot be asked about is believed")
	}
}

func TestPermissions(t *testing.T) {
	dir := shortDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := listen(t, dir, "x", 1, newFake("x"))
	for path, want := range map[string]os.FileMode{s.path: 0o600, dir: 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(link, "x", 2, nil, nil, newFake("x")); !errors.Is(err, ErrForeign) {
		t.Errorf("a link as socket directory: %v", err)
	}
}
