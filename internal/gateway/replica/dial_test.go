package replica

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// Of several cores the one that takes connections is found, whatever becomes of those that are tried before it: nobody listens there,
// it is stopped, or it has another secret.
func TestDialAny(t *testing.T) {
	taking := newGate(t, secretOne).address
	other := newGate(t, secretTwo).address
	stopped, err := net.Listen("tcp", "127.0.0.1:0") // its system takes the connection
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	away := gone.Addr().String()
	l := link(t, secretOne)
	for _, all := range [][]string{{taking}, {away, taking}, {stopped.Addr().String(), taking}, {other, taking}, {taking, away}, {away, other, stopped.Addr().String(), taking}} {
		conn, at, err := l.DialAny(t.Context(), all)
		if err != nil || at != taking {
			t.Errorf("%q: %q, %v", all, at, err)
			continue
		}
		_ = conn.Close()
	}
	for _, c := range []struct {
		all           []string
		secret, other bool // the error says that all have another secret, or that one has
	}{{[]string{away}, false, false}, {[]string{away, away}, false, false}, {[]string{other}, true, true}, {[]string{other, other}, true, true}, {[]string{away, other}, false, true}} {
		_, _, err := l.DialAny(t.Context(), c.all)
		if err == nil || errors.Is(err, ErrSecret) != c.secret || AnotherSecret(err) != c.other || slices.ContainsFunc(c.all, func(at string) bool { return !strings.Contains(err.Error(), at) }) {
			t.Errorf("%q: %v", c.all, err)
		}
	}
}
