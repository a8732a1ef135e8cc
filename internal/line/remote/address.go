package remote

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// reach is how far an address can be reached from, the least first.
type reach uint8

const (
	linkLocal reach = iota // or no address of a single host
	loopback
	private
	public
)

// reachOf is the reach of an address. The unspecified one stands for this machine.
func reachOf(ip netip.Addr) reach {
	switch ip = ip.Unmap(); {
	case ip.IsLoopback(), ip.IsUnspecified():
		return loopback
	case ip.IsPrivate(), netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10).Contains(ip): // the latter for a carrier's NAT (RFC 6598)
		return private
	case ip.IsGlobalUnicast():
		return public
	}
	return linkLocal
}

// addressGuard decides to which addresses the authorization of one MCP server may connect. It checks resolved addresses,
// so that no name can hide one.
type addressGuard struct {
	host    string // of the MCP server
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	proxies sync.Map // host:port of the user's proxies, which may have any address
}

func newAddressGuard(endpoint *url.URL) *addressGuard {
	return &addressGuard{host: endpoint.Hostname(), resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
}

// transport checks each connection with the guard.
func (g *addressGuard) transport() http.RoundTripper {
	return &http.Transport{
		Proxy: func(req *http.Request) (*url.URL, error) {
			proxy, err := http.ProxyFromEnvironment(req)
			if proxy != nil {
				port := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
				g.proxies.Store(net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port)), true)
			}
			return proxy, err
		},
		DialContext: g.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: redeemFor,
	}
}

func (g *addressGuard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTimeout}
	if _, own := g.proxies.Load(address); !own {
		d.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return g.check(ctx, at.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// check returns why an address is refused.
func (g *addressGuard) check(ctx context.Context, ip netip.Addr) error {
	switch reachOf(ip) {
	case public:
		return nil
	case loopback:
		if peer.IsLoopback(g.host) {
			return nil
		}
	case private:
		if peer.IsLoopback(g.host) || g.hostIsPrivate(ctx) {
			return nil
		}
	}
	return fmt.Errorf("%s is a private address, and %s is not: not connected", ip, g.host)
}

// hostIsPrivate reports whether the MCP server can be reached by private addresses only.
func (g *addressGuard) hostIsPrivate(ctx context.Context) bool {
	all := []netip.Addr{}
	if ip, err := netip.ParseAddr(g.host); err == nil {
		all = append(all, ip)
	} else if all, err = g.resolve(ctx, g.host); err != nil {
		return false
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(ip netip.Addr) bool { return reachOf(ip) != private })
}
