package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/outlive-mcp/outlive/internal/config"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/streamhttp"
)

// listen opens the address of the endpoint.
func (g *endpoint) listen(file *config.File, address string) (err error) {
	if err := config.CheckListen(address, file.Auth != nil); err != nil {
		return fail(exitUsage, "listen: %w", err)
	}
	if g.front, err = frontOptions(file); err != nil {
		return err
	}
	if g.listener, err = net.Listen("tcp", address); err != nil {
		return fail(exitFailure, "listen: %w", err)
	}
	scheme := "http"
	if g.front.TLS != nil {
		scheme = "https"
	}
	g.url = fmt.Sprintf("%s://%s/mcp", scheme, g.listener.Addr())
	return nil
}

// serve runs the gateway until it is interrupted, or until its client leaves.
func (g *endpoint) serve(ctx context.Context) error {
	if g.listener == nil {
		g.Run()
		return nil
	}
	g.front.Extra = map[string]http.Handler{"/healthz": g.health(), "/metrics": g.metrics()}
	front := streamhttp.New(g.Hub(), g.front)
	g.sinks.say(event.GatewayListening, "listening on "+g.url, slog.String(event.KeyURL, g.url))
	g.Warm()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := front.Serve(serving, g.listener)
		g.Interrupt() // a front that cannot go on is the end of the gateway, too
		served <- err
	}()
	g.Run()
	stop()
	front.Close()
	if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		return fail(exitFailure, "serve: %w", err)
	}
	return nil
}

// frontOptions are the settings of the endpoint in its own words.
func frontOptions(file *config.File) (streamhttp.Options, error) {
	o := streamhttp.Options{
		Hosts: file.Hosts, Origins: file.Origins,
		MaxBody: file.Limits.Body, MaxSessions: file.Limits.Sessions, SessionIdle: file.Limits.SessionIdle,
		MaxConnections: file.Limits.Connections,
	}
	if a := file.Auth; a != nil {
		o.Bearer = a.Bearer
		if a.OAuth != nil {
			o.OAuth = &streamhttp.OAuth{Issuer: a.OAuth.URL, Resource: a.OAuth.Resource, Scopes: a.OAuth.Scopes}
		}
	}
	if t := file.TLS; t != nil {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			file.Problem(t.Pos, "give PEM files that belong together", "certificate cannot be used: %v", err)
			return o, fail(exitUsage, "%w", file.Err())
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	return o, nil
}

// health answers 200 while the gateway itself works, with how each server stands: one that cannot be used is no reason to
// restart all of them.
func (g *endpoint) health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askPatience)
		defer cancel()
		all, err := g.Status(ctx)
		if err != nil {
			http.Error(w, "the gateway does not answer", http.StatusServiceUnavailable)
			return
		}
		text := ""
		for _, s := range all {
			state := "idle"
			for _, l := range s.Links {
				if state = l.Phase; l.Phase == "failed" {
					state += ": " + l.Trouble
					break
				}
			}
			text += s.Name + " " + state + "\n"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, text) // whoever asked may have gone
	})
}
