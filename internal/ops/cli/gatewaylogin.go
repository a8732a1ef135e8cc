package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	device   bool
	patience time.Duration
}

func newLogin(std streams) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login URL|SERVER [flags]",
		Short: "Authorize outlive at a remote MCP server, in the browser",
		Long: `Authorize outlive at the remote server at URL, or at SERVER of a configuration, in the browser (OAuth 2.1). What is granted is
kept in the state directory, for you only; every outlive of yours uses and renews it. Those that run take it up by themselves.

Where there is no browser, as over SSH, --use-device-code prints an address and a code to enter there, in a browser on any machine
(RFC 8628), if the authorization server offers that.

EXIT STATUS
  0  authorized
  1  it was not granted
  2  the command line or the configuration is wrong`,
		Example: "  outlive login https://mcp.linear.app/mcp\n  outlive login linear -c outlive.yaml\n  outlive login https://mcp.example/mcp --use-device-code",
		Args:    takes(1, 1),
		RunE:    interruptibly(func(ctx context.Context, args []string) error { return f.login(ctx, std, args[0]) }),
	}
	define(cmd.Flags(), f.table())
	return cmd
}

func (f *loginFlags) table() []setting {
	return slices.Concat([]setting{{name: "config", short: "c", to: &f.config, usage: "of SERVER: " + configUsage}}, f.remote.loginTable(), []setting{
		{name: "use-device-code", to: &f.device, usage: "print a page and a code to enter there in a browser on any machine, as for a login over SSH"},
		{name: "timeout", to: &f.patience, usage: "how long to wait for your consent (default: 5m, or as long as a device code is valid)", natural: true},
	})
}

// check says what is wrong with the flags.
func (f *loginFlags) check() error {
	if err := checkEach(f.table()); err != nil {
		return fail(exitUsage, "login: %w", err)
	}
	if f.device && f.remote.callbackPort != 0 {
		return fail(exitUsage, "login: leave out --callback-port or --use-device-code: with a code no browser comes back to this machine")
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
	if f.device {
		err = remote.NewOAuth(opts).LoginByDevice(ctx, func(code remote.DeviceCode) error { return showCode(std.out, code) })
	} else {
		opts.Authorize = func(_ context.Context, page remote.Page) error { return f.showPage(std.out, page) }
		err = remote.NewOAuth(opts).Login(ctx)
	}
	if err != nil {
		return fail(exitFailure, "login %s: %w%s", server.Name, err, deviceHint(err))
	}
	_, err = fmt.Fprintf(std.out, "%s: authorized\n", server.Name)
	return err
}

// showPage opens the page of a login in the browser, and prints it.
func (f *loginFlags) showPage(out io.Writer, page remote.Page) error {
	if _, err := fmt.Fprintf(out, "Open this page in a browser on this machine, if it does not open by itself:\n\n    %s\n\n", page.URL); err != nil {
		return err
	}
	opener := pageOpener(page.URL)
	if page.Device && (opener == nil || os.Getenv("SSH_CONNECTION") != "") {
		const text = "If this machine has no browser, stop this with Ctrl-C and add --use-device-code: then one on any machine will do."
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	if opener != nil && !f.remote.noBrowser {
		open(opener)
	}
	return nil
}

// showCode prints what to do with a device code.
func showCode(out io.Writer, code remote.DeviceCode) error {
	text := "Open this page in a browser on any machine:\n\n    " + code.Page + "\n\nand enter this code:\n\n    " + code.Code + "\n\n"
	if code.Complete != "" {
		text += "Or open this one, and check that it shows the same code:\n\n    " + code.Complete + "\n\n"
	}
	_, err := fmt.Fprintf(out, "%sThis waits for you for %s.\n", text, briefly(code.Valid))
	return err
}

// deviceHint says what to do where a login by device code fails.
func deviceHint(err error) string {
	const forwarded = "leave out --use-device-code; over SSH forward the login's port: ssh -L 9696:127.0.0.1:9696 HOST, and there --no-browser --callback-port 9696"
	switch {
	case errors.Is(err, remote.ErrNoDeviceLogin):
		return ": " + forwarded
	case errors.Is(err, remote.ErrDeviceClient):
		return ": name one that may with --client-id (of a configuration: auth.oauth.client_id), or " + forwarded
	case errors.Is(err, remote.ErrDeviceTooLate), errors.Is(err, remote.ErrDeviceDenied):
		return ": run it again for a new code"
	}
	return ""
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
