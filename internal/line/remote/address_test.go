package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAddressGuard(t *testing.T) {
	for _, tc := range []struct {
		endpoint string
		resolved string // addresses of the endpoint's host
		allowed  string
		refused  string
	}{
		{"https://mcp.example/mcp", "203.0.113.5", "93.184.216.34 2606:2800::1",
			"127.0.0.1 ::1 ::ffff:127.0.0.1 0.0.0.0 10.1.2.3 192.168.1.1 100.64.0.1 fd00::1 169.254.169.254 fe80::1 224.0.0.1 255.255.255.255"},
		{"https://mcp.corp/mcp", "10.0.0.5 fd00::5", "93.184.216.34 10.9.9.9 192.168.1.1", "127.0.0.1 169.254.169.254"},
		{"https://mixed.example/mcp", "203.0.113.5 10.0.0.5", "93.184.216.34", "10.9.9.9 127.0.0.1"},
		{"https://nowhere.example/mcp", "", "93.184.216.34", "10.9.9.9"},
		{"http://192.168.1.7:8080/mcp", "", "192.168.1.1", "127.0.0.1 169.254.169.254"},
		{"http://localhost:8080/mcp", "", "127.0.0.1 ::1 10.0.0.1 93.184.216.34", "169.254.169.254"},
	} {
		u, err := url.Parse(tc.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		g := newAddressGuard(u)
		g.resolve = func(context.Context, string) (all []netip.Addr, err error) {
			for _, ip := range strings.Fields(tc.resolved) {
				all = append(all, netip.MustParseAddr(ip))
			}
			return all, nil
		}
		for want, list := range map[bool]string{true: tc.allowed, false: tc.refused} {
			for _, ip := range strings.Fields(list) {
				if err := g.check(t.Context(), netip.MustParseAddr(ip)); (err == nil) != want {
					t.Errorf("%s to %s: %v", tc.endpoint, ip, err)
				}
			}
		}
	}
}

// A server elsewhere cannot have us ask something of what listens on this machine, by whatever name and on whatever way.
func TestNoWayToLoopback(t *testing.T) {
	var asked atomic.Int32
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer local.Close()
	port := local.Listener.Addr().(*net.TCPAddr).Port
	o := NewOAuth(OAuthOptions{Endpoint: "https://mcp.example/mcp"})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		for _, scheme := range []string{"http", "https"} {
			place := fmt.Sprintf("%s://%s:%d/admin/shutdown?really=1", scheme, host, port)
			var into map[string]any
			err := o.getJSON(t.Context(), place, &into)
			if err == nil || !strings.Contains(err.Error(), "not connected") && !strings.Contains(err.Error(), "neither https") {
				t.Errorf("%s: %v", place, err)
			}
		}
		if _, err := o.client.Get(fmt.Sprintf("http://%s:%d/", host, port)); err == nil || !strings.Contains(err.Error(), "not connected") {
			t.Errorf("%s was connected to: %v", host, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("%d requests arrived", asked.Load())
	}
}
