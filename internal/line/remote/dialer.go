package remote

import (
	"context"
	"errors"
	"net"
)

// dialer connects to names that DNS knows, and to those that only the system does, such as homeassistant.local by mDNS. Go asks the
// system by its C library, which this program is built without.
type dialer struct {
	of    *net.Dialer
	known func(ctx context.Context, host string) (addresses []string)
}

// dial is DialContext of a transport.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.of.DialContext(ctx, network, address)
	if unknown := (*net.DNSError)(nil); !errors.As(err, &unknown) {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	host, port, _ := net.SplitHostPort(address) // otherwise there would have been nothing to look up
	for _, ip := range d.known(ctx, host) {
		if conn, err := d.of.DialContext(ctx, network, net.JoinHostPort(ip, port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
