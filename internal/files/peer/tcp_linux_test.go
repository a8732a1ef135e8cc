package peer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// Lines as Linux 6 on amd64 writes them.
func TestOwnerIn(t *testing.T) {
	us := netip.MustParseAddrPort("127.0.0.1:8080")
	us6 := netip.MustParseAddrPort("[::1]:8080")
	for _, tc := range []struct {
		name, near string
		far        netip.AddrPort
		line       string
		uid        int
		found      bool
	}{
		{"a client", "127.0.0.1:58184", us, "   1: 0100007F:E348 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 1000, true},
		{"our own end", "127.0.0.1:58184", us, "   1: 0100007F:1F90 0100007F:E348 01 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 0, false},
		{"another port", "127.0.0.1:58185", us, "   1: 0100007F:E348 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 0, false},
		{"it said all it had to say", "127.0.0.1:58184", us, "   1: 0100007F:E348 0100007F:1F90 05 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 1000, true},
		{"it was closed, and the system says root", "127.0.0.1:58184", us, "   1: 0100007F:E348 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 00000000b8560089 20 4 30 10 -1", 0, false},
		{"through an IPv6 socket", "127.0.0.1:58184", us, "   1: 0000000000000000FFFF00000100007F:E348 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 1000, true},
		{"IPv6", "[::1]:58184", us6, "   1: 00000000000000000000000001000000:E348 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 1151 1 00000000b8560089 20 4 30 10 -1", 1000, true},
		{"cut short", "127.0.0.1:58184", us, "   1: 0100007F:E348 0100007F:1F90 01 00000000:00000000", 0, false},
	} {
		o, found := ownerIn(strings.NewReader(heading+tc.line+"\n"), netip.MustParseAddrPort(tc.near), tc.far)
		if int(o.uid) != tc.uid || found != tc.found {
			t.Errorf("%s: %+v, %v", tc.name, o, found)
		}
	}
}

func ends(c net.Conn) (local, remote netip.AddrPort) {
	return c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
}

// The system's tables have the owner of a connection of ours while its other end is open. Once that is closed there
// is no owner, although the system shows the user 0.
func TestTCP(t *testing.T) {
	if !TellsTCP() {
		t.Fatal("Linux does not say whose connections are")
	}
	for _, tc := range []struct{ listen, network, dial string }{
		{"127.0.0.1:0", "tcp4", "127.0.0.1"}, {"[::1]:0", "tcp6", "::1"}, {"[::]:0", "tcp4", "127.0.0.1"},
	} {
		l, err := net.Listen("tcp", tc.listen)
		if err != nil {
			if strings.HasPrefix(tc.listen, "[") {
				continue // no IPv6 here: its lines are in TestOwnerIn
			}
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		client, err := net.Dial(tc.network, net.JoinHostPort(tc.dial, port))
		if err != nil {
			t.Fatal(err)
		}
		served, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		local, remote := ends(served)
		for name, look := range map[string]func(local, remote netip.AddrPort) (int, error){
			"TCP": TCP, "the tables": func(local, remote netip.AddrPort) (int, error) { return fromTables(remote, local) },
		} {
			if uid, err := look(local, remote); err != nil || uid != os.Getuid() || !OursOrRoots(uid) {
				t.Errorf("%s, %s: user %d, %v", tc.listen, name, uid, err)
			}
		}
		if o, err := askDiag(remote, local); err != nil || int(o.uid) != os.Getuid() || o.inode == 0 {
			t.Errorf("%s, asked by address: %+v, %v", tc.listen, o, err)
		}
		if o, err := askDiag(local, netip.AddrPortFrom(remote.Addr(), 1)); err == nil {
			t.Errorf("%s: whoever listens was taken for whoever is connected: %+v", tc.listen, o)
		}
		client.Close()
		if uid, err := TCP(local, remote); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s, closed: user %d, %v", tc.listen, uid, err)
		}
		if uid, err := fromTables(remote, local); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s, closed: user %d in the tables, %v", tc.listen, uid, err)
		}
		served.Close()
		l.Close()
	}
}

func BenchmarkTCP(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	remote, local := ends(c)
	for name, look := range map[string]func(local, remote netip.AddrPort) (int, error){
		"asked": TCP, "tables": func(local, remote netip.AddrPort) (int, error) { return fromTables(remote, local) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := look(local, remote); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
