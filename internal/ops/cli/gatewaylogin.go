package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
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

func newLogin(std streams) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login URL|SERVER [flags]",
		Short: "Authorize outlive at a remote MCP server, in the browser",
		Long: `Authorize outlive at the remote server at URL, or at SERVER of a configuration, in the browser (OAuth 2.1). What is granted is
kept in the state directory, for you only; every outlive of yours uses and renews it. Those that run take it up by themselves.

Where there is no browser, as over SSH, open the page that is printed in one on any machine. It ends at an address of 127.0.0.1 that
cannot be opened there: copy that address and paste it here.

EXIT STATUS
  0  authorized
  1  it was not granted
  2  the command line or the configuration is wrong`,
		Example: "  outlive login https://mcp.linear.app/mcp\n  outlive login linear -c outlive.yaml",
		Args:    takes(1, 1),
		RunE:    interruptibly(func(ctx context.Context, args []string) error { return f.login(ctx, std, args[0]) }),
	}
	define(cmd.Flags(), f.table())
	return cmd
}

func (f *loginFlags) table() []setting {
	return slices.Concat([]setting{{name: "config", short: "c", to: &f.config, usage: "of SERVER: " + configUsage}}, f.remote.loginTable(), []setting{
		{name: "timeout", to: &f.patience, usage: "how long to wait for your consent (default: 5m)", natural: true},
	})
}

// check says what is wrong with the flags.
func (f *loginFlags) check() error {
	if err := checkEach(f.table()); err != nil {
		return fail(exitUsage, "login: %w", err)
	}
	return nil
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
	if given := givenWords(f.remote.table()); len(given) > 0 {
		return config.Server{}, fail(exitUsage, "login: %s is for a URL; for a server of a configuration it stands there, under auth", given[0])
	}
	if strings.Contains(name, "://") {
		return config.Server{}, fail(exitUsage, "login: %q is no address of a server: it begins with https:// or http://, and a host follows", name)
	}
	path, _, err := configFile(f.config)
	if err != nil {
		return config.Server{}, fail(exitUsage, "login: %q is no URL, such as https://mcp.example/mcp, and for the name of a server there is no configuration: %s", name,
			strings.TrimPrefix(err.Error(), "gateway: no configuration: "))
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

func (f *loginFlags) login(ctx context.Context, std streams, name string) error {
	if err := f.check(); err != nil {
		return err
	}
	server, err := f.server(name)
	if err != nil {
		return err
	}
	opts := oauthOptions(server)
	opts.Patience = f.patience
	opts.Authorize = func(_ context.Context, page remote.Page) error { return f.showPage(std, page) }
	if err := remote.NewOAuth(opts).Login(ctx); err != nil {
		return fail(exitFailure, "login %s: %w", server.Name, err)
	}
	_, err = fmt.Fprintf(std.out, "%s: authorized\n", server.Name)
	return err
}

// showPage prints the page of a login and opens it in the browser. Where that is on another machine, the address at which it ends is
// read from stdin.
func (f *loginFlags) showPage(std streams, page remote.Page) error {
	const text = `Open this page in a browser, if it does not open by itself:

    %s

If the browser is on another machine, it ends at an address that cannot be opened there: paste that address here.
`
	if _, err := fmt.Fprintf(std.out, text, page.URL); err != nil {
		return err
	}
	readBeside()
	go func() { // until the command ends
		for lines := bufio.NewScanner(std.in); lines.Scan(); {
			address := strings.TrimSpace(lines.Text())
			if address == "" {
				continue
			}
			if err := page.Arrived(address); err != nil {
				_, _ = fmt.Fprintf(std.out, "%v: copy all of it from the browser, with code= and state=\n", err)
			}
		}
	}()
	if opener := pageOpener(page.URL); opener != nil && !f.remote.noBrowser {
		open(opener)
	}
	return nil
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
	remotes := cmp.Or(strings.Join(there, ", "), "none")
	switch {
	case i < 0:
		return config.Server{}, fmt.Errorf("%s has no server %q; with a url: %s", file.Name, name, remotes)
	case file.Servers[i].Transport != config.HTTP:
		return config.Server{}, fmt.Errorf("%s is started by a command: there is nothing to log in to; with a url: %s", name, remotes)
	case file.Servers[i].Disabled:
		return config.Server{}, fmt.Errorf("%s is disabled", name)
	case file.Servers[i].Auth != nil && file.Servers[i].Auth.Bearer != "":
		return config.Server{}, fmt.Errorf("%s has a bearer token in its configuration, which is used instead of a login", name)
	}
	return file.Servers[i], nil
}

// pageOpener is the command that opens a page in the user's browser: $BROWSER if it is one program, which not all take it for, or the
// desktop's. nil: there is none.
func pageOpener(page string) []string {
	if own, err := exec.LookPath(os.Getenv("BROWSER")); err == nil {
		return []string{own, page}
	}
	if opener := browserCommand(page); len(opener) > 0 {
		if _, err := exec.LookPath(opener[0]); err == nil {
			return opener
		}
	}
	return nil
}

// open runs a command that opens a page. Errors are ignored: the user has been told the alternatives.
func open(opener []string) {
	for _, attr := range []*syscall.SysProcAttr{outsideJob, nil} { // a client's job may forbid that it is left
		cmd := exec.Command(opener[0], opener[1:]...)
		cmd.SysProcAttr = attr
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }() // only to reap it
			return
		}
	}
}
