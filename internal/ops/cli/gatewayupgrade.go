package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sessionstore"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// savedGateway is what a gateway leaves to the next image in its process, beside what was written of sessions.
type savedGateway struct {
	Address     string // that it was to listen at
	Listener    int    // descriptor
	Connections []int  // descriptors of its clients' connections
	Sessions    []sessionstore.Entry
}

// replacing is the part of an endpoint that becomes another image.
type replacing struct {
	address string
	front   atomic.Pointer[streamhttp.Front] // nil until it serves
	ready   atomic.Bool                      // requests are held back, and the runner is ending for the next image
}

// errStdioStays is why a gateway on stdin and stdout is not upgraded in place.
var errStdioStays = errors.New("not possible for a gateway on stdin and stdout: restart its client instead")

// gateway is what the image before this one has left of its gateway.
func (l *legacy) gateway() *savedGateway {
	if l == nil || l.Gateway == nil {
		return &savedGateway{}
	}
	return l.Gateway
}

// Upgrade lets the program on disk take our place. It waits for a moment without requests in flight, no longer than wait, and
// returns only if the upgrade is not possible; then everything goes on. Any goroutine.
func (g *endpoint) Upgrade(ctx context.Context, wait time.Duration) error {
	front := g.replace.front.Load()
	var stays error
	switch {
	case g.listener == nil:
		stays = errStdioStays
	case front == nil:
		stays = errors.New("it is starting")
	}
	err := g.image.upgrade(ctx, wait, stays, func(ctx context.Context) error { return front.Hold(ctx, g.Busy) })
	if err != nil {
		return err
	}
	g.replace.ready.Store(true)
	g.Runner.Interrupt() // the servers end; then serve goes on with become
	<-ctx.Done()
	return ctx.Err()
}

// become executes the program on disk in our place, with the address and the connections of clients.
func (g *endpoint) become(front *streamhttp.Front) error {
	saved := &savedGateway{Address: g.replace.address, Sessions: g.sessions.onlyHere()}
	files, err := front.Connections()
	if err != nil {
		g.warn(err.Error() + "; its client has to connect again")
	}
	for _, f := range files {
		saved.Connections = append(saved.Connections, int(f.Fd()))
	}
	socket, ok := g.listener.(interface{ File() (*os.File, error) })
	if !ok {
		return fail(exitFailure, "hand over %s: it is no socket", g.replace.address)
	}
	listener, err := socket.File()
	if err != nil {
		return fail(exitFailure, "hand over %s: %w", g.replace.address, err)
	}
	saved.Listener = int(listener.Fd())
	g.others.end() // the next image has another time with the lease
	err = g.image.become(&legacy{Gateway: saved}, append(saved.Connections, saved.Listener))
	runtime.KeepAlive(files) // or their descriptors might be closed
	runtime.KeepAlive(listener)
	return fail(exitFailure, "upgrade: %w", err) // the servers have ended: whoever starts the gateway again has its sessions
}

// inherit returns the listener that the image before this one has left, nil if there is none for this address.
func (g *endpoint) inherit(address string) (socketListener, error) {
	left := g.left
	if left.Address == "" {
		return nil, nil
	}
	conns := make(chan net.Conn, len(left.Connections))
	for _, fd := range left.Connections {
		f := os.NewFile(uintptr(fd), "connection")
		if c, err := net.FileConn(f); err == nil { // otherwise its client has left
			conns <- c
		}
		_ = f.Close() // it was copied
	}
	f := os.NewFile(uintptr(left.Listener), "listener")
	defer f.Close()
	if left.Address != address { // the configuration says another one now
		close(conns)
		for c := range conns {
			_ = c.Close()
		}
		return nil, nil
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take over %s: %w", address, err)
	}
	socket, ok := l.(socketListener)
	if !ok {
		return nil, fmt.Errorf("take over %s: it is a %T", address, l)
	}
	return &inheritedListener{socketListener: socket, conns: conns}, nil
}

// socketListener is a listener on TCP or a Unix socket.
type socketListener interface {
	net.Listener
	File() (*os.File, error)
	SetDeadline(time.Time) error
}

// inheritedListener is a listener that first accepts the connections which the image before this one had.
type inheritedListener struct {
	socketListener
	conns <-chan net.Conn
}

func (l *inheritedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	default:
		return l.socketListener.Accept()
	}
}
