package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/line/remote"
)

// loginFlags are the flags of `outlive gateway login` as they were given.
type loginFlags struct {
	config   string
	remote   remoteFlags
	patience time.Duration
}

func newLogin(io streams) *cobra.Command {
	f := loginFlags{patience: 5 * time.Minute}
	cmd := &cobra.Command{
		Use:   "login URL|SERVER [flags]",
		Short: "Authorize outlive at a remote MCP server, in the browser",
		Long: `Authorize outlive at the remote server at URL, or at SERVER of a configuration, in the browser (OAuth 2.1). What is granted is
kept in the state directory, for you only; every outlive of yours uses and renews it. Those that run take it up by themselves.

EXIT STATUS
  0  authorized
  1  it was not granted
  2  the command line or the configuration is wrong`,
		Example: "  outlive login https://mcp.linear.app/mcp\n  outlive login linear -c outlive.yaml",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.login(ctx, io, args[0])
		},
	}
	define(cmd.Flags(), slices.Concat([]setting{{name: "config", short: "c", to: &f.config, usage: "of SERVER: " + configUsage}}, f.remote.loginTable(),
		[]setting{{name: "timeout", to: &f.patience, usage: "how long to wait for the browser"}}))
	return cmd
}

// server returns the server to log in to.
func (f *loginFlags) server(name string) (config.Server, error) {
	if isURL(name) {
		if f.config != "" {
			return config.Server{}, fail(exitUsage, "login: a URL needs no configuration: leave out -c, or name the server as %s does", f.config)
		}
		file, err := f.remote.load(nameOf([]string{name}), []string{name})
		if err != nil {
			return config.Server{}, err
		}
		return file.Servers[0], nil
	}
	if given := f.remote.words(); len(given) > 0 {
		return config.Server{}, fail(exitUsage, "login: %s is for a URL; for a server of a configuration it stands there, under auth", given[0])
	}
	path, _, err := configFile(f.config)
	if err != nil {
		return config.Server{}, err
	}
	file, _, err := loadConfig(path)
	if err != nil {
		return config.Server{}, err
	}
	server, err := remoteServer(file, name)
	if err != nil {
		return server, fail(exitUsage, "login: %w", err)
	}
	return server, nil
}

// login is `outlive login`.
func (f *loginFlags) login(ctx context.Context, io streams, name string) error {
	server, err := f.server(name)
	if err != nil {
		return err
	}
	opts := oauthOptions(server)
	opts.Patience = f.patience
	opts.Authorize = func(_ context.Context, page string) error {
		if _, err := fmt.Fprintf(io.out, "Open this page in a browser on this machine, if it does not open by itself:\n\n    %s\n\n", page); err != nil {
			return err
		}
		if opener := pageOpener(page); opener != nil && !f.remote.noBrowser {
			open(opener)
		}
		return nil
	}
	if err := remote.NewOAuth(opts).Login(ctx); err != nil {
		return fail(exitFailure, "login %s: %w", server.Name, err)
	}
	_, err = fmt.Fprintf(io.out, "%s: authorized\n", server.Name)
	return err
}

// remoteServer returns a server of a configuration that has a login.
func remoteServer(file *config.File, name string) (config.Server, error) {
	i := slices.IndexFunc(file.Servers, func(s config.Server) bool { return s.Name == name })
	var there []string
	for _, s := range file.Servers {
		if s.Transport == config.HTTP {
			there = append(there, s.Name)
		}
	}
	if len(there) == 0 {
		there = []string{"none"}
	}
	switch {
	case i < 0:
		return config.Server{}, fmt.Errorf("%s has no server %q; with a url: %s", file.Name, name, strings.Join(there, ", "))
	case file.Servers[i].Transport != config.HTTP:
		return config.Server{}, fmt.Errorf("%s is started by a command: there is nothing to log in to; with a url: %s", name, strings.Join(there, ", "))
	case file.Servers[i].Disabled:
		return config.Server{}, fmt.Errorf("%s is disabled", name)
	case file.Servers[i].Auth != nil && file.Servers[i].Auth.Bearer != "":
		return config.Server{}, fmt.Errorf("%s has a bearer token in its configuration, which is used instead of a login", name)
	}
	return file.Servers[i], nil
}

// pageOpener is the command that opens a page in the user's browser: $BROWSER, or the desktop's. nil: there is none.
func pageOpener(page string) []string {
	opener := browserCommand(page)
	if own := os.Getenv("BROWSER"); own != "" {
		opener = []string{own, page}
	}
	if len(opener) == 0 {
		return nil
	}
	if _, err := exec.LookPath(opener[0]); err != nil {
		return nil
	}
	return opener
}

// open runs a command that opens a page. Errors are ignored: the user has been told the alternatives.
func open(opener []string) {
	cmd := exec.Command(opener[0], opener[1:]...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // only to reap it
	}
}
