package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// idleConnection is how long an idle connection is kept. It is longer than that of proxies towards their upstream (60
// s), so that they close first and no request meets a closing connection.
const idleConnection = 2 * time.Minute

// mostPeerConnections is how many connections other gateways may have here, mostStrangers how many may not have shown that they are of one.
const mostPeerConnections, mostStrangers = 1 << 20, 1024

// Serve serves a listener, and that of Options.Peers, until ctx is done, then waits Options.Grace for running requests, ends everything,
// closes the listeners and returns nil. Any other end is an error. The front cannot be used afterwards.
func (f *Front) Serve(ctx context.Context, listener net.Listener) error {
	clients, others := f.server(f), f.server(http.HandlerFunc(f.passedOn))
	clients.TLSConfig = f.opts.TLS
	own := newAnonymousConns(listener, f.opts.MaxConnections, 0)
	conns := &connections{clients: own, all: []*anonymousConns{own}, others: others}
	ended := make(chan error, 2) // of each server
	started := 1
	if p := f.opts.Peers; p != nil {
		theirs := newAnonymousConns(p.Listener, mostPeerConnections, mostStrangers)
		conns.all = append(conns.all, theirs)
		started++
		go func() { ended <- others.Serve(theirs) }()
	}
	f.conns.Store(conns)
	go func() {
		if f.opts.TLS != nil {
			ended <- clients.ServeTLS(own, "", "")
		} else {
			ended <- clients.Serve(own)
		}
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended: // it has failed
		started--
	}
	f.shutdown(conns, clients, others)
	for range started {
		if one := <-ended; err == nil {
			err = one
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", listener.Addr(), err)
}

// headerMost is the largest header of a request, in bytes.
const headerMost = 64 << 10

// server makes one of Serve's.
func (f *Front) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: f.opts.ReadTimeout,
		IdleTimeout:       idleConnection,
		MaxHeaderBytes:    headerMost,
		ErrorLog:          slog.NewLogLogger(f.opts.Log.Handler(), slog.LevelWarn),
		ConnState: func(c net.Conn, state http.ConnState) {
			if c := connBelow(c); c != nil {
				c.note(state)
			}
		},
		ConnContext: rememberConn,
	}
}

// shutdown ends endless streams, waits for the rest, and cuts what takes longer.
func (f *Front) shutdown(conns *connections, servers ...*http.Server) {
	conns.release()
	f.drain.begin()
	for _, v := range conns.all {
		v.closeUnused()
	}
	patience, cancel := context.WithTimeout(context.Background(), f.opts.Grace)
	defer cancel()
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() {
			if server.Shutdown(patience) != nil {
				// Cutting the connections ends the requests; an error does not matter.
				_ = server.Close()
			}
		})
	}
	all.Wait()
	f.Close()
}

// closeUnused closes connections that have never had a request, now and from now on. Clients open some in advance, and a server that
// shuts down would wait five seconds for each.
func (v *anonymousConns) closeUnused() {
	var unused []*anonymousConn
	v.mu.Lock()
	v.ending = true
	for c := range v.all {
		if !c.used {
			unused = append(unused, c)
		}
	}
	v.mu.Unlock()
	for _, c := range unused {
		_ = c.Close()
	}
}
