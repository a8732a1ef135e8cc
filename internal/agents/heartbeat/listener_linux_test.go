package heartbeat

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said is a notice, and who has sent it.
type said struct {
	pid int
	Notice
}

func listen(t *testing.T, path string) (*Listener, chan said) {
	t.Helper()
	heard := make(chan said, 100)
	l, err := Listen(path, func(pid int, n Notice) { heard <- said{pid, n} })
	if err != nil {
		t.Fatal(err)
	}
	return l, heard
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, heard := listen(t, path)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("others may write: %v, %v", st.Mode(), err)
	}
	c := dial(t, path)
	for _, text := range []string{"FDSTORE=1", strings.Repeat("X=1\n", NotifyLimit), "", "READY=1\nSTATUS=up"} {
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// Empty datagrams, and those without a known line, are ignored; later ones are received.
	if o := <-heard; o.pid != os.Getpid() || !o.Ready || o.Status != "up" {
		t.Errorf("heard %+v", o)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if len(heard) > 0 {
		t.Errorf("heard %+v too", <-heard)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

// A datagram that is too long is a sign of life all the same: its whole lines count.
func TestListenerReadsTheBeginningOfALongOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, heard := listen(t, path)
	defer l.Close()
	cut := "WATCHDOG=1\nSTATUS=up\nX=" + strings.Repeat("x", NotifyLimit-64)
	cut += "\nEXTEND_TIMEOUT_USEC=" + strings.Repeat("9", NotifyLimit)
	if _, err := dial(t, path).Write([]byte(cut)); err != nil {
		t.Fatal(err)
	}
	if o := <-heard; !o.Watchdog || o.Status != "up" || o.Extend != 0 {
		t.Errorf("heard %+v", o)
	}
}

// sd_notify_barrier sends a descriptor and waits until it is closed.
func TestListenerClosesDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, _ := listen(t, path)
	defer l.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := dial(t, path).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(int(fd), []byte("BARRIER=1"), unix.UnixRights(int(w.Fd())), nil, 0)
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	w.Close()
	if err := r.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("the barrier stays: %d, %v", n, err)
	}
}

func TestListenerTakesOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	// A killed listener leaves its socket.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	l, heard := listen(t, path)
	defer l.Close()
	if _, err := Listen(path, nil); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("two on one socket: %v", err)
	}
	if _, err := dial(t, path).Write([]byte("WATCHDOG=1")); err != nil {
		t.Fatal(err)
	}
	<-heard
	if _, err := Listen(filepath.Join(t.TempDir(), strings.Repeat("x", 120)), nil); err == nil || !strings.Contains(err.Error(), "longer than 107") {
		t.Errorf("a long name: %v", err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(plain, nil); err == nil {
		t.Error("an ordinary file is replaced")
	}
}
