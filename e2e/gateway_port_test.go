package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// freeAddress is a loopback address that nobody listens on now, for servers that cannot choose one and say so.
func freeAddress(t *testing.T) string {
	t.Helper()
	return freeAddresses(t, 1)[0]
}

var givenPorts sync.Map // by freeAddresses

// freeAddresses are several. They are below the ports that the system gives to connections, which would take one again before it is used.
func freeAddresses(t *testing.T, many int) (all []string) {
	t.Helper()
	for tries := 0; len(all) < many; tries++ {
		port := 20_000 + rand.IntN(10_000)
		if _, given := givenPorts.LoadOrStore(port, true); given { // another test is about to listen there
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close()
		all = append(all, l.Addr().String())
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
