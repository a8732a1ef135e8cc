package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// listen opens the address of the endpoint, with all that says who may come in.
func (g *endpoint) listen(file *config.File, address string) (err error) {
	if err := config.CheckListen(address, file.Auth != nil); err != nil {
		if len(g.flags.one) > 0 {
			return fail(exitUsage, "listen: %w; here the token stands in a file: --token-file FILE", err)
		}
		return fail(exitUsage, "listen: %w", err)
	}
	if g.front, err = frontOptions(file); err == nil && file.Auth == nil {
		g.tokenFile, err = admitLocal(&g.front, file, g.flags.name)
	}
	if err != nil {
		return err
	}
	left, err := g.inherit(address)
	if g.listener = left; err == nil && left == nil {
		g.listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		return fail(exitFailure, "%w%s", err, whoListens(address))
	}
	g.replace.address = address
	g.url = urlOf(g.listener, g.front)
	if err := g.joinOthers(file); err != nil || g.front.Store != nil {
		return err
	}
	g.keepSessions(file, address)
	return nil
}

// urlOf is where clients of this machine come to a listener, also to one at all its addresses.
func urlOf(l net.Listener, o streamhttp.Options) string {
	scheme, address := "http", l.Addr().String()
	if o.TLS != nil {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("localhost", port)
	}
	return scheme + "://" + address + streamhttp.Path
}

// whoListens names the gateway that uses an address already; "" if it is another program.
func whoListens(address string) string {
	all, err := askAll(context.Background())
	if err != nil {
		return ""
	}
	for _, r := range all {
		u, err := url.Parse(r.status.URL)
		if _, port, _ := net.SplitHostPort(address); err == nil && port != "" && u.Port() == port {
			return fmt.Sprintf(": the gateway %s serves there, with %s", r.Label(), r.status.Config)
		}
	}
	return ": choose another one with --listen"
}

// rawLog writes to the log.
type rawLog struct{ to *logline.Writer }

func (r rawLog) Write(p []byte) (int, error) {
	r.to.Raw(p)
	return len(p), nil
}

// Paths beside that of MCP.
const healthPath, metricsPath = "/healthz", "/metrics"

// tellListening reports where clients can come.
func tellListening(k *sinks, l net.Listener, url, tokenFile string) {
	what := "Listening on " + url
	if addr, ok := l.Addr().(*net.TCPAddr); ok && addr.IP.IsUnspecified() {
		what += ", and at every other address of this machine"
	}
	if tokenFile != "" {
		what += "; clients need the header Authorization: Bearer TOKEN, with the token in " + tokenFile
	}
	k.say(event.GatewayListening, what, slog.String(event.KeyURL, url))
}

// frontLog logs the progress of each HTTP request, with --log-level debug. These are not events: they only help to
// find unanswered requests. nil: not logged.
func frontLog(f gatewayFlags, k *sinks) *slog.Logger {
	opts := slog.HandlerOptions{Level: slog.LevelDebug}
	if f.logLevel != logLevels[0] {
		return nil
	}
	if f.logFormat == logline.JSON {
		return slog.New(slog.NewJSONHandler(rawLog{k.log}, &opts))
	}
	return slog.New(slog.NewTextHandler(rawLog{k.log}, &opts))
}

// serve runs the gateway until it is interrupted, or until its client leaves.
func (g *endpoint) serve(ctx context.Context) error {
	if g.listener == nil {
		g.Run()
		return nil
	}
	g.front.Extra = map[string]http.Handler{healthPath: g.health(), metricsPath: g.metrics()}
	g.front.Log = frontLog(g.flags, g.sinks)
	g.mu.Lock()
	front := streamhttp.New(g.Runner, g.front)
	g.replace.front.Store(front) // from here on it gets new views from whoever reads them
	g.mu.Unlock()
	tellListening(g.sinks, g.listener, g.url, g.tokenFile)
	g.Warm()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := front.Serve(serving, g.listener)
		g.Interrupt() // without the front the gateway ends, too
		served <- err
	}()
	g.Run()
	if g.replace.ready.Load() {
		return g.become(front)
	}
	stop()
	front.Close()
	if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		return fail(exitFailure, "serve: %w", err)
	}
	return nil
}

// Interrupt ends the gateway. What comes while its servers end is for another gateway. Any goroutine.
func (g *endpoint) Interrupt() {
	if front := g.replace.front.Load(); front != nil {
		front.Leave()
	}
	g.Runner.Interrupt()
}

// frontOptions converts the settings of the endpoint.
func frontOptions(file *config.File) (streamhttp.Options, error) {
	o := streamhttp.Options{
		Hosts: file.Hosts, Origins: file.Origins,
		MaxBody: file.Limits.Body, MaxSessions: file.Limits.Sessions, SessionIdle: file.Limits.SessionIdle,
		MaxConnections: file.Limits.Connections, SessionRelease: file.Limits.SessionRelease,
		Views: frontViews(file.Views),
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

// health answers 200 while the gateway itself works, with each server's state: one broken server is no reason to
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
			text += s.Name + " " + overview.StateOf(s)
			if trouble := cmp.Or(overview.TroubleOf(s), overview.FailingOf(s)); trouble != "" {
				text += ": " + logline.Printable(strings.ReplaceAll(trouble, "\n", " "))
			}
			text += "\n"
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, text) // the client may have disconnected
	})
}

// admitLocal sets which users of this machine may use an endpoint without auth: a client gets the servers' rights,
// with the files and logins of the user they run as. tokenFile is the file with the required token, "" if none is
// required.
func admitLocal(o *streamhttp.Options, file *config.File, name string) (tokenFile string, err error) {
	users := file.LocalUsers
	if users == "" {
		users = config.LocalToken
		if peer.TellsTCP() {
			users = config.LocalOwn
		}
	}
	switch users {
	case config.LocalOwn:
		if !peer.TellsTCP() {
			file.Problem(file.LocalUsersPos, "write token, or any", "this system does not say which user a connection belongs to")
			return "", fail(exitUsage, "%w", file.Err())
		}
		o.Peer = ownUserOnly
	case config.LocalToken:
		tokenFile = filepath.Join(stateDir(), "gateway", name+".token")
		token, err := localToken(tokenFile)
		if err != nil {
			return "", fail(exitFailure, "token for local clients: %w", err)
		}
		o.Bearer = []string{token}
	}
	return tokenFile, nil
}

// ownUserOnly admits this user and root.
func ownUserOnly(local, remote net.Addr) error {
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return err
	}
	there, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return err
	}
	return ownUser(peer.TCP(here, there))
}

// ownUser returns an error for a connection of another user, or of one that the system cannot identify.
func ownUser(uid int, err error) error {
	whose := fmt.Sprintf("this connection is of user %d", uid)
	switch {
	case err != nil:
		whose = err.Error()
	case peer.OursOrRoots(uid):
		return nil
	}
	return fmt.Errorf("only user %d and root may use this gateway, and %s. For other users, and for a reverse proxy that runs as one, "+
		"set auth in its configuration (a token for each client) or local_users: any", os.Getuid(), whose)
}

// tokenText is the form of the tokens that [localToken] makes.
const tokenText = `^[A-Z2-7]{26}\n?$`

// localToken returns the token in a file that only this user can read, and creates both if necessary. A gateway that
// starts again has the same token, because clients have it in their configuration.
func localToken(path string) (string, error) {
	text, err := atomicfile.Read(path, 64)
	switch {
	case err == nil && regexp.MustCompile(tokenText).Match(text):
		return strings.TrimSpace(string(text)), os.Chmod(path, 0o600)
	case err == nil:
		return "", fmt.Errorf("%s holds something else: remove it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	token := rand.Text()
	return token, atomicfile.WriteDurably(path, []byte(token+"\n"))
}

// mostTokens is the largest file with tokens, in bytes.
const mostTokens = 64 << 10

// readTokens reads the tokens that clients may send: one in each line, besides empty lines and those that begin with #.
func readTokens(path string) (*config.Auth, error) {
	text, err := atomicfile.Read(path, mostTokens)
	if err != nil {
		return nil, fail(exitUsage, "--token-file: %w", err)
	}
	auth := &config.Auth{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := config.CheckToken(line); err != nil {
			return nil, fail(exitUsage, "--token-file: line %d of %s %w", i+1, path, err)
		}
		auth.Bearer = append(auth.Bearer, line)
	}
	if len(auth.Bearer) == 0 {
		return nil, fail(exitUsage, "--token-file: %s has no token: write one into it, such as that of openssl rand -hex 32", path)
	}
	return auth, nil
}
