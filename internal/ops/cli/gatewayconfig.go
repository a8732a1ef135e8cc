package cli

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// configName is the configuration file that people write.
const configName = "outlive.yaml"

// configFile finds the configuration: the named one, or the user's own. One in the working directory is used only if
// it is named, because it may come from a repository, and its commands would run without the user having read them.
// passedOver says that there is one.
func configFile(named string) (path string, passedOver bool, err error) {
	if named != "" {
		return named, false, nil
	}
	_, here := os.Stat(configName)
	path = filepath.Join(configDir(), configName)
	switch _, own := os.Stat(path); {
	case own == nil:
		return path, here == nil, nil
	case here == nil:
		return "", false, fail(exitUsage, "gateway: no configuration: there is no %s; the %s of this directory is used only when it is named: -c %s",
			path, configName, configName)
	}
	return "", false, fail(exitUsage, "gateway: no configuration: there is no %s; name one with -c, such as -c .mcp.json", path)
}

// loadConfig reads a configuration; mistakes are reported with their positions. The digest is that of its text.
func loadConfig(path string) (file *config.File, digest [sha256.Size]byte, err error) {
	home, _ := os.UserHomeDir() // without a home directory, ~ is an error in the file
	opts := config.Options{Keys: policyKeys(), Lookup: os.LookupEnv, Home: home}
	opts.Seen = func(text []byte) { digest = sha256.Sum256(text) }
	if file, err = config.Load(path, opts); err != nil {
		return nil, digest, fail(exitUsage, "%w", err)
	}
	return file, digest, nil
}

// notInFile is what names of files have an underscore for.
var notInFile = lazyregexp.New(`[^A-Za-z0-9.-]`)

// Reload reads the configuration again. If it has mistakes, the previous one stays in use.
func (g *endpoint) Reload() error {
	if g.path == "" {
		err := fmt.Errorf("there is nothing to read again: the only server stands on the command line; outlive restart %s restarts it", g.flags.name)
		g.warn(err.Error())
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	file, digest, err := loadConfig(g.path)
	g.read = digest
	var servers []gateway.Server
	if err == nil {
		servers, err = g.served.load(file)
	}
	if err != nil {
		g.tellRejected(err)
		return err
	}
	g.apply(servers, file.Views)
	g.rewatch()
	g.sinks.say(event.ConfigLoaded, fmt.Sprintf("Configuration read: %s of %s", counted(len(servers), "server"), g.path),
		slog.Any(event.KeyFiles, []string{g.path}), slog.Int(event.KeyCount, len(servers)))
	g.tellWarnings(file)
	if fixed := changedForGood(g.begun, file); len(fixed) > 0 {
		g.warn(strings.Join(fixed, ", ") + " changed in the configuration: that counts from the next start on")
	}
	return nil
}

// tellRejected reports the mistakes of a configuration with their positions. A log entry is one line: what is behind the first one
// follows unchanged.
func (g *endpoint) tellRejected(err error) {
	first, rest, _ := strings.Cut(err.Error(), "\n")
	g.sinks.Emit(event.Event{Type: event.ConfigRejected, Time: time.Now(), Level: slog.LevelError,
		Message: "The configuration is not used, what was there before goes on: " + first,
		Attrs:   []slog.Attr{slog.String(event.KeyError, err.Error()), slog.Any(event.KeyFiles, []string{g.path})}})
	if rest != "" {
		g.sinks.log.Raw([]byte(rest + "\n"))
	}
}

// tellWarnings reports settings without effect.
func (g *endpoint) tellWarnings(file *config.File) {
	for _, w := range file.Warnings {
		first, rest, _ := strings.Cut(file.Render(w), "\n")
		g.warn(first)
		if rest != "" {
			g.sinks.log.Raw([]byte(rest + "\n"))
		}
	}
}

// warn reports an oddity of the configuration that is not a mistake.
func (g *endpoint) warn(text string) {
	g.sinks.warn(event.ConfigLoaded, text, slog.Any(event.KeyFiles, []string{g.begun.Name}))
}

// changedForGood names the changed settings that are used only at the start.
func changedForGood(was, is *config.File) (names []string) {
	for _, s := range []struct {
		name    string
		was, is any
	}{
		{"names", was.Names, is.Names}, {"listen", was.Listen, is.Listen}, {authKey(was, is), was.Auth, is.Auth},
		{"local_users", was.LocalUsers, is.LocalUsers},
		{"tls", filesOf(was.TLS), filesOf(is.TLS)}, {"origins", was.Origins, is.Origins}, {"hosts", was.Hosts, is.Hosts},
		{"sessions", was.Sessions, is.Sessions}, {"limits", was.Limits, is.Limits},
	} {
		if !reflect.DeepEqual(s.was, s.is) {
			names = append(names, s.name)
		}
	}
	return names
}

// authKey names the key that says whether tokens are needed.
func authKey(was, is *config.File) string {
	if bare := (config.Auth{}); was.Auth != nil && reflect.DeepEqual(*was.Auth, bare) || is.Auth != nil && reflect.DeepEqual(*is.Auth, bare) {
		return "whether views have tokens (bearer)"
	}
	return "auth"
}

// filesOf returns the files of a certificate, without the position in the configuration.
func filesOf(t *config.TLS) (files [2]string) {
	if t != nil {
		files = [2]string{t.Cert, t.Key}
	}
	return files
}

// counted formats a number: "1 server" or "2 servers".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// apply puts a configuration's servers and views into effect. The lock that guards reading it is held, or nobody else
// has the endpoint yet.
func (g *endpoint) apply(servers []gateway.Server, views []config.View) {
	shown := make([]gateway.View, len(views))
	for i, v := range views {
		shown[i] = gateway.View{Name: v.Name, Servers: map[string]catalog.Filter{}, NoTools: v.NoTools}
		for _, s := range v.Servers {
			shown[i].Servers[s.Name] = catalog.Filter{Allow: s.Allow, Deny: s.Deny}
		}
	}
	g.SetServers(servers, shown...)
	g.front.Views = frontViews(views)
	if front := g.replace.front.Load(); front != nil {
		front.SetViews(g.front.Views)
	}
}

// frontViews are the views as far as they say who sees them.
func frontViews(views []config.View) (all []streamhttp.View) {
	for _, v := range views {
		all = append(all, streamhttp.View{Name: v.Name, Bearer: v.Bearer, Subjects: v.Subjects})
	}
	return all
}

// checkView rejects a --view that nobody could see.
func (g *endpoint) checkView(file *config.File, address string) error {
	name := g.flags.view
	switch {
	case name == "":
		return nil
	case address != "":
		return fail(exitUsage, "--view is for a client on stdin and stdout; over HTTP clients choose one by its path, /mcp/%s, or their token does", name)
	case !slices.ContainsFunc(file.Views, func(v config.View) bool { return v.Name == name }):
		return fail(exitUsage, "--view %q: %s has no view of that name", name, file.Name)
	}
	return nil
}
