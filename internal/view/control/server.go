package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

const (
	bodyLimit     = 64 << 10 // longest request body, in bytes
	closePatience = 500 * time.Millisecond
)

// Server is the control socket of one running outlive.
type Server struct {
	path   string
	http   http.Server
	cancel context.CancelFunc // ends those that follow events or messages
	served chan struct{}      // closed when the accepting goroutine has ended
	noted  chan struct{}      // closed when that has ended which keeps the curves
	curves curve.Recorder
}

// Listen makes the socket of the outlive called name with process id pid in dir and serves src there until Close. Its events are those of
// feed, and its messages those of messages; nil: it does not see them. dir is made if need be. Where its path is too long for a socket, a
// short directory under the temporary directory stands for it.
func Listen(dir, name string, pid int, feed *Feed, messages *tap.Tap, src Source) (*Server, error) {
	path := PathIn(dir, socketFile(name, pid))
	l, err := ListenAt(path) // whatever has our own process id in its name is of a process that is no more
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{path: path, cancel: cancel, served: make(chan struct{}), noted: make(chan struct{})}
	s.http.Handler = routes(src, feed, messages, &s.curves)
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.ReadHeaderTimeout = 5 * time.Second
	s.http.IdleTimeout = 30 * time.Second
	go func() {
		defer close(s.noted)
		s.curves.Run(ctx, func() map[string]curve.Totals { return totalsOf(src.Used()) })
	}()
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // it ends by Close
	}()
	return s, nil
}

// ListenAt makes a socket that is the user's alone, in a directory that is so, too. What is there already is taken for left over.
func ListenAt(path string) (*net.UnixListener, error) {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make socket directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := protect(path); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect %s: %w", path, err)
	}
	return l, nil
}

// Close ends the service, for running requests within half a second, and removes the socket.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.served
	select {
	case <-s.noted:
	case <-time.After(closePatience): // it asks for the totals just now
	}
	return err
}

func routes(src Source, feed *Feed, messages *tap.Tap, curves *curve.Recorder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, src.Status())
	})
	mux.HandleFunc("GET /v1/curves", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // what is no minute is before all of them
		answer(w, http.StatusOK, curves.After(after))
	})
	mux.HandleFunc("GET /v1/events", feed.serve)
	mux.HandleFunc("GET /v1/messages", func(w http.ResponseWriter, r *http.Request) { serveMessages(w, r, messages) })
	mux.HandleFunc("POST /v1/restart", func(w http.ResponseWriter, r *http.Request) { restart(w, r, src) })
	mux.HandleFunc("POST /v1/upgrade", func(w http.ResponseWriter, r *http.Request) {
		wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
		if err == nil {
			err = src.Upgrade(r.Context(), wait)
		}
		if err != nil {
			answer(w, http.StatusServiceUnavailable, refusal{err.Error()})
		}
	})
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := src.Reload(); err != nil {
			answer(w, http.StatusServiceUnavailable, refusal{err.Error()})
			return
		}
		answer(w, http.StatusOK, struct{}{})
	})
	return mux
}

// refusal is the body of an answer that is an error, and on the other side that error.
type refusal struct {
	Text string `json:"error"`
}

func (r *refusal) Error() string { return r.Text }

func restart(w http.ResponseWriter, r *http.Request, src Source) {
	var o Order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(&o)
	if err != nil && !errors.Is(err, io.EOF) {
		answer(w, http.StatusBadRequest, refusal{"bad restart request: " + err.Error()})
		return
	}
	result, err := src.Restart(r.Context(), o)
	if err != nil {
		answer(w, http.StatusServiceUnavailable, refusal{err.Error()})
		return
	}
	answer(w, http.StatusOK, result)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
