package cli

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The gateway's own user and root are admitted; other users, and connections that the system cannot identify, get an
// error that says what to do.
func TestOwnUser(t *testing.T) {
	for _, uid := range []int{0, os.Getuid()} {
		if err := ownUser(uid, nil); err != nil {
			t.Errorf("user %d: %v", uid, err)
		}
	}
	for name, err := range map[string]error{"user 54321": ownUser(54321, nil), "no idea": ownUser(0, errors.New("no idea"))} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "set auth in its configuration") || !strings.Contains(err.Error(), "local_users: any") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOwnUserOnly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	if err := ownUserOnly(served.LocalAddr(), served.RemoteAddr()); err != nil {
		t.Error(err)
	}
	client.Close()
	if err := ownUserOnly(served.LocalAddr(), served.RemoteAddr()); err == nil {
		t.Error("a connection whose other end is closed, which the system lists as root's, was let in")
	}
}

func TestLocalToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "x.token")
	first, err := localToken(path)
	if err != nil || len(first) < 26 {
		t.Fatalf("%q, %v", first, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := localToken(path)
	if st, _ := os.Stat(path); err != nil || again != first || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("again: %q, %v, %v", again, st.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := localToken(path); err == nil {
		t.Errorf("an empty file is the token %q", token)
	}
}
