package e2e

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// freeAddress is a loopback address that nobody listens on now, for servers that cannot choose one and say so.
func freeAddress(t *testing.T) string {
	t.Helper()
	return freeAddresses(t, 1)[0]
}

// freeAddresses are several, which the system chooses. Until the test ends a socket that does not listen is bound to each: so the
// system gives it neither to another test nor to a connection, and a server that sets SO_REUSEADDR, as all do, may listen there.
func freeAddresses(t *testing.T, many int) (all []string) {
	t.Helper()
	for range many {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
			t.Fatal(err)
		}
		name, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		bound, ok := name.(*unix.SockaddrInet4)
		if !ok {
			t.Fatalf("a socket of IPv4 is bound to %T", name)
		}
		all = append(all, fmt.Sprintf("127.0.0.1:%d", bound.Port))
	}
	return all
}

func awaitListener(t *testing.T, address string) {
	t.Helper()
	if !eventually(func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		t.Fatalf("nobody listens on %s", address)
	}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
