//go:build unix

package peer

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, err := Unix(c.(*net.UnixConn)); err != nil || uid != os.Getuid() {
		t.Errorf("user %d, %v", uid, err)
	}
}
