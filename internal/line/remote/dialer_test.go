package remote

import (
	"context"
	"errors"
	"net"
	"testing"
)

// A server whose name is known to the system and not to DNS, as by mDNS, is reached; one that is known to nobody is told as before.
func TestNameThatOnlyTheSystemKnows(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	none := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no DNS here")
	}}
	d := dialer{of: &net.Dialer{Resolver: none}, known: func(_ context.Context, host string) []string {
		if host == "home.local" {
			return []string{"no address", "127.0.0.1"}
		}
		return nil
	}}
	conn, err := d.dial(t.Context(), "tcp", "home.local:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	unknown := (*net.DNSError)(nil)
	if _, err := d.dial(t.Context(), "tcp", "nobody.local:"+port); !errors.As(err, &unknown) {
		t.Errorf("error %v", err)
	}
}
