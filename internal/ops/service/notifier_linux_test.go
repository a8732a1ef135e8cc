package service

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// What is said arrives on a socket like systemd's, also one without a file.
func TestNotifierSpeaks(t *testing.T) {
	for _, address := range []string{filepath.Join(t.TempDir(), "n"), "@outlive-notifier-test"} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		n, err := NewNotifier(systemd(address, "1000000", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Ready("at work"); err != nil {
			t.Fatal(err)
		}
		if err := n.Alive(time.Now()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 2 {
			buffer := make([]byte, 100)
			k, err := conn.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(buffer[:k]))
		}
		if diff := cmp.Diff([]string{"READY=1\nSTATUS=at work", "WATCHDOG=1"}, got); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if err := n.Alive(time.Now().Add(time.Hour)); err == nil {
			t.Errorf("%s: no error though nobody listens", address)
		}
	}
}

// A systemd that takes nothing does not hang whoever it watches.
func TestNotifierDoesNotHang(t *testing.T) {
	address := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := &Notifier{socket: address, send: sendDatagram}
	for began := time.Now(); ; {
		if err := n.Ready("still here"); err != nil {
			break
		}
		if time.Since(began) > tier.Patience {
			t.Fatal("its queue is never full")
		}
	}
}
