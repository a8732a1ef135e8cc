package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/line/remote"
)

// remoteFlags are the flags for a server that is given by its URL.
type remoteFlags struct {
	given        config.Given // but for the server itself, its name and the port
	callbackPort int
	noBrowser    bool
}

// table is what can be set of a server at a URL.
func (f *remoteFlags) table() []setting {
	header := setting{name: "header", to: &f.given.Headers, usage: "of a URL: header `'NAME: VALUE'` for each request, repeated for several; write secrets as ${NAME} (environment) or ${file:PATH}"}
	transport := setting{name: "transport", to: &f.given.Transport, optional: true, words: []string{"auto", "sse"},
		usage: "of a URL: sse: it speaks the HTTP+SSE of 2024-11-05 and nothing else (default auto: found out)"}
	return append([]setting{header, transport}, f.loginTable()...)
}

// loginTable are those of them that login has, too.
func (f *remoteFlags) loginTable() []setting {
	return []setting{
		{name: "client-id", to: &f.given.ClientID, usage: "of a URL: our id at its authorization server (default: registered, if that lets clients register)"},
		{name: "client-secret", to: &f.given.ClientSecret, usage: "of a URL: the secret of --client-id, as ${NAME} or ${file:PATH}; wants --issuer"},
		{name: "issuer", to: &f.given.Issuer, usage: "of a URL: the only authorization server to ask (default: the one that it names at the first login)"},
		{name: "resource", to: &f.given.Resource, usage: "of a URL: what the login is to be good for (default: what it says of itself); each has a login of its own"},
		{name: "scope", to: &f.given.Scopes, usage: "of a URL: scopes to ask for (default: those it asks for)", commas: true},
		{name: "callback-port", to: &f.callbackPort, usage: "of a URL: loopback port that the browser comes back to after the login (default: any)"},
		{name: "no-browser", to: &f.noBrowser, usage: "open no page for a login, only tell what to do"},
	}
}

// isURL reports whether an argument in the place of a command is the URL of a remote server.
func isURL(word string) bool {
	scheme, rest, ok := strings.Cut(word, "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// hostOf is the host of a URL, which is used as the server's name.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// load makes a configuration of the one server on the command line: a command, or a URL with these flags.
func (f *remoteFlags) load(name string, argv []string) (*config.File, error) {
	if err := f.check(argv); err != nil {
		return nil, err
	}
	g := f.given // of a command there is nothing, which was checked
	g.Name, g.CallbackPort = name, f.callbackPort
	if isURL(argv[0]) {
		g.URL = argv[0]
	} else {
		g.Command = argv
	}
	for _, h := range g.Headers {
		if !strings.Contains(h, ":") {
			return nil, fail(exitUsage, "--header has no colon: write it like 'NAME: VALUE'")
		}
	}
	home, _ := os.UserHomeDir() // without one, ~ cannot be used, and the error says where it is used
	here, err := os.Getwd()
	if err != nil {
		return nil, fail(exitFailure, "working directory: %w", err)
	}
	file, err := config.OfCommandLine(g, config.Options{Lookup: os.LookupEnv, Home: home, Dir: here})
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	return file, nil
}

// check rejects the flags together with a command, where they have no effect.
func (f *remoteFlags) check(argv []string) error {
	if given := givenWords(f.table()); len(given) > 0 && !isURL(argv[0]) {
		return fail(exitUsage, "%s is for a server that is named by its URL, and %s is a command", given[0], argv[0])
	}
	return nil
}

// loginCommand is the command for logging in at a URL. Literal secrets in it are not shown.
func (f *remoteFlags) loginCommand(url string) string {
	words := secret.Words(append([]string{"outlive", "login", url}, givenWords(f.loginTable())...))
	for i := range words {
		words[i] = shellWord(words[i])
	}
	return strings.Join(words, " ")
}

// ofMCPRemote maps flags of the npm package mcp-remote that outlive does not have to the corresponding ones.
var ofMCPRemote = map[string]string{
	"--protocol":                     "leave it out: outlive translates where client and server speak different eras of the protocol",
	"--allow-http":                   "leave it out: http:// may be used",
	"--enable-proxy":                 "leave it out: HTTPS_PROXY and NO_PROXY count",
	"--keep-alive":                   "leave it out: a server that is silent is asked whether it still works",
	"--auth-timeout":                 "leave it out: a login may take 5 minutes",
	"--host":                         "leave it out: the browser comes back to 127.0.0.1",
	"--debug":                        "write --log-level debug",
	"--silent":                       "write --log-level error",
	"--header-file":                  "write --header 'NAME: ${file:PATH}', with the value only in the file",
	"--static-oauth-client-info":     "write --client-id, and for a secret --client-secret and --issuer",
	"--static-oauth-client-metadata": "write --scope",
	"--ignore-tool":                  "name the server in an outlive.yaml, with deny, and start outlive gateway -c outlive.yaml in place of outlive run",
}

// parseBehindURL parses the flags after a URL: they cannot be a server's own there.
func parseBehindURL(cmd *cobra.Command, words []string) error {
	fl := cmd.Flags()
	fl.SetInterspersed(true)
	if err := fl.Parse(words); err != nil {
		_, flag, _ := strings.Cut(err.Error(), ": ")
		if instead := ofMCPRemote[flag]; instead != "" {
			return fmt.Errorf("%s is a flag of mcp-remote: %s", flag, instead)
		}
		return flagError(cmd, err)
	}
	if fl.NArg() > 0 {
		hint := ""
		if _, err := strconv.Atoi(fl.Arg(0)); err == nil {
			hint = "; for the port that the browser comes back to write --callback-port " + fl.Arg(0)
		}
		return fmt.Errorf("run: one argument too many behind the URL: %q%s", fl.Arg(0), hint)
	}
	if help, err := fl.GetBool("help"); err == nil && help {
		return pflag.ErrHelp // cobra handles it
	}
	return nil
}

// pageTurn is how often a process checks whether it has to open the page because the process that had opened it has
// ended.
const pageTurn = time.Second

// askToLogIn opens the page of a server that requires a login, and says what can be done instead. Of several
// processes that wait for the same login, one opens the page.
func (s *settings) askToLogIn(k *sinks, grant string) func(ctx context.Context, page remote.Page) error {
	return func(ctx context.Context, page remote.Page) error {
		opener := pageOpener(page.URL)
		if s.noBrowser || opener == nil {
			s.tellLogin(k, "no browser is opened here. In a terminal run: "+s.login+"  This goes on by itself then.")
			return nil
		}
		s.tellLogin(k, "its page opens in the browser. Where none is seen, run in a terminal: "+s.login)
		if err := os.MkdirAll(filepath.Dir(grant), 0o700); err != nil {
			return fmt.Errorf("keep logins: %w", err)
		}
		lock := flock.New(grant+".page", flock.SetPermissions(0o600))
		mine, err := lock.TryLock()
		if err != nil {
			return fmt.Errorf("keep logins: %w", err)
		}
		go func() {
			defer func() { _ = lock.Close() }() // the system releases it in any case
			if !mine {
				if _, err := lock.TryLockContext(ctx, pageTurn); err != nil {
					return
				}
				select { // if the other process has got the grant, that is noticed first
				case <-ctx.Done():
					return
				case <-time.After(pageTurn):
				}
			}
			open(opener)
			<-ctx.Done()
		}()
		return nil
	}
}

// tellLogin writes to the server's stderr that it requires a login: while a client uses stdin there is no other way.
func (s *settings) tellLogin(k *sinks, what string) {
	_, _ = fmt.Fprintf(k.kept, "%s wants a login: %s\n", s.backend.Name, what) // a sink counts its own losses
}
