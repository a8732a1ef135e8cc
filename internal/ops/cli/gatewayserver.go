package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/watch"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// policyKeys are the settings of `outlive run` as keys of a server in a configuration.
func policyKeys() []config.PolicyKey {
	var keys []config.PolicyKey
	for _, s := range newRunFlags().table() {
		if !s.own {
			keys = append(keys, config.PolicyKey{Name: string(s.name), Kind: s.kind(), Usage: s.usage, Enum: s.words})
		}
	}
	return keys
}

// kind is the type of a setting's values in a configuration.
func (s *setting) kind() config.Kind {
	switch s.to.(type) {
	case *bool:
		return config.Bool
	case *int:
		return config.Int
	case *time.Duration:
		return config.Duration
	case *[]string:
		return config.List
	}
	if s.size {
		return config.Size
	}
	return config.String
}

// served is one configured server with its options for the packages that run it.
type served struct {
	sinks   *sinks
	options host.Options
	watch   watch.Options
	known   string // path of the knowledge file
	digest  string // differs if anything in its configuration differs
}

// newServed combines a server's settings with its sinks.
func newServed(k *sinks, s *settings, dir string, env []string) *served {
	one := &served{sinks: k, options: hostOptions(s, k), watch: s.watch, known: s.known}
	one.options.Dir, one.options.Env = dir, env
	return one
}

// servedSet has all servers so far, by name and digest: processes of an earlier configuration may still run for a
// while.
type servedSet struct {
	sinks   *sinks
	gateway string
	login   func(server string) string // returns the command for logging in to a server
	browser bool                       // login pages are opened in a browser

	mu  sync.Mutex
	now map[string]*served       // by name
	log map[string]*logline.Kept // by name
}

func newServedSet(k *sinks, name string, login func(server string) string, openBrowser bool) *servedSet {
	return &servedSet{sinks: k, gateway: name, login: login, browser: openBrowser, now: map[string]*served{}, log: map[string]*logline.Kept{}}
}

// load applies a configuration's servers, or returns its mistakes.
func (set *servedSet) load(file *config.File) ([]gateway.Server, error) {
	now := map[string]*served{}
	var servers []gateway.Server
	for _, c := range file.Servers {
		if c.Disabled {
			continue
		}
		one, err := set.serve(file, c)
		if err != nil {
			continue // recorded with its position already
		}
		if was := set.current()[c.Name]; was != nil && was.digest == one.digest {
			one = was // all its connections share one authorization
		}
		now[c.Name] = one
		server := one.server(catalog.Server{Name: c.Name, Prefix: c.Prefix, Filter: catalog.Filter{Allow: c.Allow, Deny: c.Deny}, Rename: c.Rename})
		server.Shared, server.Instances = c.Shared, c.Instances
		servers = append(servers, server)
	}
	if err := file.Err(); err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	set.mu.Lock()
	set.now = now
	set.mu.Unlock()
	return servers, nil
}

// server converts it for the gateway.
func (one *served) server(shown catalog.Server) gateway.Server {
	known := loadKnowledge(one.known)
	server := gateway.Server{
		Catalog: shown, Digest: one.digest,
		Legacy: known.Era == mcp.Legacy, Bridge: !one.options.Backend.NoBridge,
		Lazy: one.options.Backend.Lazy, Sleeps: one.options.Backend.IdleFor > 0,
	}
	if !one.options.Backend.NoFastStart {
		server.Known = known
	}
	return server
}

// host returns the host options for a link to it, with what is known of it by now.
func (one *served) host(l *gateway.Link) host.Options {
	opts := one.options
	opts.Backend.Known, opts.Backend.Pinned = loadKnowledge(one.known), l.Needed()
	return opts
}

// digestOf is a digest of the server's configuration, regardless of its position in the file.
func digestOf(c config.Server) (string, error) {
	c.Pos, c.TargetPos = fileerror.Pos{}, fileerror.Pos{}
	c.Policy = slices.Clone(c.Policy)
	for i := range c.Policy {
		c.Policy[i].Pos = fileerror.Pos{}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("compare the configuration of %s: %w", c.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// serve converts one server. Mistakes are recorded in the file, with their positions.
func (set *servedSet) serve(file *config.File, c config.Server) (*served, error) {
	f := newRunFlags()
	fl := f.flagSet()
	f.backend.NoTools = true // the gateway has these tools for all servers
	for _, p := range c.Policy {
		for _, value := range p.Values {
			if err := fl.Set(p.Key, value); err != nil {
				file.Problem(p.Pos, "", "%v", err)
				return nil, err
			}
		}
	}
	f.backend.Name = c.Name
	argv := c.Command
	if c.Transport == config.HTTP {
		argv = []string{shownURL(c.URL)}
	}
	dir, err := filepath.Abs(c.Dir) // ours, if it has none
	if err != nil {
		return nil, err
	}
	s, err := f.check(dir, argv, fl.Changed)
	if err != nil {
		at, text := inWordsOfFile(c, err)
		file.Problem(at, "", "%s", text)
		return nil, err
	}
	if c.Transport == config.Stdio {
		// A missing command is not a mistake in the configuration: it may be installed later, and calls are answered
		// with the error until then.
		s.executable, _ = child.Resolve(argv[0], dir)
	} else {
		s.elsewhere(c, fl.Changed)
		s.login, s.asks = set.login(c.Name), set.browser
	}
	s.backend.Supervise.Exits.Endless = true // its server does not end the gateway
	s.paths(set.gateway+"."+c.Name, c.Env)
	var env []string // ours, unless there is more
	if len(c.Env) > 0 {
		env = withVars(c.Env)
	}
	one := newServed(set.sinks.of(c.Name, set.keep(c.Name, s.stderrLog)), s, c.Dir, env)
	one.digest, err = digestOf(c)
	return one, err
}

// remoteWait is the longest time between two attempts to reach a remote server, before jitter. Several attempts fit
// into the time that a request waits for a server.
const remoteWait = 5 * time.Second

// waitForNetwork adapts a policy for processes to connections, unless configured: a returning network should be
// noticed soon, and attempts are cheap, so that they never end.
func waitForNetwork(p *backoff.Policy, changed func(string) bool) {
	if !changed("max-restarts") {
		p.MaxRestarts = 0
	}
	if !changed("backoff") && !changed("restart-delay") {
		p.Max = remoteWait
	}
}

// shownURL is a URL for logs and status: without passwords and queries, which are often keys.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the configured URL"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// inWordsOfFile rewords a mistake in a server's policy in the terms of its file, with the position of the first key
// it names.
func inWordsOfFile(c config.Server, err error) (fileerror.Pos, string) {
	wrong, ok := errors.AsType[*settingError](err)
	if !ok {
		return c.Pos, c.Name + ": " + err.Error()
	}
	at := c.Pos
	for _, name := range slices.Backward(wrong.settings()) {
		if i := slices.IndexFunc(c.Policy, func(s config.Setting) bool { return s.Key == string(name) }); i >= 0 {
			at = c.Policy[i].Pos
		}
	}
	return at, c.Name + ": " + wrong.spelt(settingName.key)
}

// keep opens the file for a server's stderr, once for each name.
func (set *servedSet) keep(name, path string) *logline.Kept {
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.log[name] == nil {
		label := []byte("[" + name + "] ")
		set.log[name] = logline.OpenKept(path, logline.KeptOptions{
			Pass: (&labeller{label: label, out: set.sinks.log.Raw}).pass, PassRoom: set.sinks.log.Room,
			OnFailure: func(err error) {
				set.sinks.say(event.ServerLogLost, fmt.Sprintf("server log of %s cannot be written: %v; going on without", name, err))
			},
		})
	}
	return set.log[name]
}

// host returns the host options for a link's server.
func (set *servedSet) host(l *gateway.Link) host.Options {
	opts := set.current()[l.Name()].host(l)
	set.sinks.makeState(opts.StateDir)
	return opts
}

// current returns the servers of the configuration, by name.
func (set *servedSet) current() map[string]*served {
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.now
}

// keptOf returns a server's kept stderr; nil if there was no such server.
func (set *servedSet) keptOf(name string) *logline.Kept {
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.log[name]
}

func (set *servedSet) close() {
	set.mu.Lock()
	defer set.mu.Unlock()
	for _, kept := range set.log {
		_ = kept.Close() // its wait is limited, and an error could not be reported any more
	}
}

// labeller prefixes each line of a server's stderr with the server's name. A server may have several processes, each
// with a goroutine that writes here.
type labeller struct {
	label []byte
	out   func([]byte)

	mu  sync.Mutex
	mid bool // the last line is incomplete
}

func (l *labeller) pass(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []byte
	for len(p) > 0 {
		if !l.mid {
			out = append(out, l.label...)
		}
		end := bytes.IndexByte(p, '\n') + 1
		if l.mid = end == 0; l.mid {
			end = len(p)
		}
		out = append(out, p[:end]...)
		p = p[end:]
	}
	l.out(out)
}

// openGatewaySinks starts the log lines and the audit log. The flags were checked.
func openGatewaySinks(io streams, f gatewayFlags) (*sinks, error) {
	s := &settings{logFormat: f.logFormat, audit: auditPath(f.audit, filepath.Join(stateDir(), "audit", f.name+".jsonl"))}
	_ = s.logLevel.UnmarshalText([]byte(f.logLevel)) // it knows each of logLevels
	return openSinks(io, s, logline.Options{Gateway: true})
}
