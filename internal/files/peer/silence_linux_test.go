package peer

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Both ends of a connection are to notice that the other one has vanished, whether something was sent or not.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := Dialer(time.Second).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	Watch(there.(*net.TCPConn))
	for name, conn := range map[string]net.Conn{"dialled": here, "accepted": there} {
		raw, err := conn.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		option := func(level, number int) (value int) {
			if e := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, number) }); e != nil || err != nil {
				t.Fatal(e, err)
			}
			return value
		}
		if ms := option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); ms != int(Silence.Milliseconds()) {
			t.Errorf("%s: what was sent may be unacknowledged for %d ms", name, ms)
		}
		idle, interval, count := option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
		if option(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || time.Duration(idle+interval*count)*time.Second != Silence {
			t.Errorf("%s: %d s and %d probes in %d s", name, idle, count, interval)
		}
	}
}
