package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// idleConnection is how long an idle connection is kept. It is longer than that of proxies towards their upstream (60
// s), so that they close first and no request meets a closing connection.
const idleConnection = 2 * time.Minute

// Serve serves a listener until ctx is done, then waits Options.Grace for running requests, ends everything, closes the
// listener and returns nil. Any other end is an error. The front cannot be used afterwards.
func (f *Front) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           f,
		TLSConfig:         f.opts.TLS,
		ReadHeaderTimeout: f.opts.ReadTimeout,
		IdleTimeout:       idleConnection,
		MaxHeaderBytes:    f.opts.MaxHeader,
		ErrorLog:          slog.NewLogLogger(f.opts.Log.Handler(), slog.LevelWarn),
	}
	all := newAnonymousConns(listener, f.opts.MaxConnections, f.opts.MaxAnonymous)
	f.conns.Store(all)
	listener = all
	server.ConnState = func(c net.Conn, state http.ConnState) {
		if c := connBelow(c); c != nil {
			c.note(state)
		}
	}
	server.ConnContext = rememberConn
	served := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served: // it failed
		}
		f.shutdown(server, all)
	}()
	var err error
	if f.opts.TLS != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	close(served)
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", listener.Addr(), err)
}

// shutdown ends endless streams, waits for the rest, and cuts what takes longer.
func (f *Front) shutdown(server *http.Server, all *anonymousConns) {
	all.release()
	f.endStreams()
	all.closeUnused()
	patience, cancel := context.WithTimeout(context.Background(), f.opts.Grace)
	defer cancel()
	if server.Shutdown(patience) != nil {
		// Cutting the connections ends the requests; an error does not matter.
		_ = server.Close()
	}
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
