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
	config    string
	noBrowser bool
	patience  time.Duration
}

func newGatewayLogin(io streams) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login SERVER [flags]",
		Short: "Authorize outlive at a remote server of the configuration",
		Long: `Authorize outlive at the remote server SERVER of the configuration, in the browser (OAuth 2.1). What is granted is kept in
the state directory, for you only; every gateway of yours uses and renews it. A gateway that runs takes it up by itself.

EXIT STATUS
  0  authorized
  1  it was not granted
  2  the command line or the configuration is wrong`,
		Example: "  outlive gateway login linear -c outlive.yaml",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.login(ctx, io, args[0])
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.config, "config", "c", "", configUsage)
	fl.BoolVar(&f.noBrowser, "no-browser", false, "only print the page's address")
	fl.DurationVar(&f.patience, "timeout", 5*time.Minute, "how long to wait for the browser")
	return cmd
}

// login is `outlive gateway login`.
func (f *loginFlags) login(ctx context.Context, io streams, name string) error {
	path, _, err := configFile(f.config)
	if err != nil {
		return err
	}
	file, _, err := loadConfig(path)
	if err != nil {
		return err
	}
	server, err := remoteServer(file, name)
	if err != nil {
		return fail(exitUsage, "login: %w", err)
	}
	opts := oauthOptions(server)
	opts.Patience = f.patience
	opts.Authorize = func(_ context.Context, page string) error {
		if _, err := fmt.Fprintf(io.out, "Open this page in a browser on this machine, if it does not open by itself:\n\n    %s\n\n", page); err != nil {
			return err
		}
		if !f.noBrowser {
			openPage(page)
		}
		return nil
	}
	if err := remote.NewOAuth(opts).Login(ctx); err != nil {
		return fail(exitFailure, "login %s: %w", name, err)
	}
	_, err = fmt.Fprintf(io.out, "%s: authorized\n", name)
	return err
}

// remoteServer finds the server that is to be logged in to.
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

// openPage shows a page in the user's browser: $BROWSER, or the desktop's. A failure is not an error: the address was
// printed, or the following error says how to log in.
func openPage(page string) {
	opener := browserCommand(page)
	if own := os.Getenv("BROWSER"); own != "" {
		opener = []string{own, page}
	}
	cmd := exec.Command(opener[0], opener[1:]...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // only so that it is not left unreaped
	}
}
