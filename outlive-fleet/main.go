package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/ops/service"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// settings are what outlive says of itself.
type settings struct {
	state, socket, program, release string

	read  tokensRead
	began bool // the command line was understood
}

// usage is the error of a mistake in the command line.
type usage struct{ error }

func wrong(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

func main() {
	service.SignalCrashes(os.Getenv)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s settings
	err := command(&s).ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(logline.NewScreen(os.Stderr), "outlive: "+err.Error())
	stop()
	if s.began && !errors.As(err, new(usage)) {
		os.Exit(1)
	}
	os.Exit(2) // a mistake in the command line
}

func command(s *settings) *cobra.Command {
	root := &cobra.Command{
		Use: "fleet", SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "outlive fleet"},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if s.state == "" || s.socket == "" {
				return wrong("start it as: outlive fleet; see docs/FLEET.md")
			}
			s.began = true
			return nil
		},
	}
	fl := root.PersistentFlags()
	fl.StringVar(&s.state, "state", "", "directory for what is kept")
	fl.StringVar(&s.socket, "socket", "", "where the member of this machine listens")
	fl.StringVar(&s.program, "program", "outlive", "outlive itself")
	fl.StringVar(&s.release, "release", "", "outlive's version")
	for _, name := range []string{"state", "socket", "program", "release"} {
		_ = fl.MarkHidden(name) // it is there
	}
	root.AddCommand(newHub(s), newToken(s), newJoin(s), newStatus(s), newLeave(s), newNATSUser(s))
	return root
}

func (s *settings) hubDir() string      { return filepath.Join(s.state, "hub") }
func (s *settings) memberFile() string  { return filepath.Join(s.state, "member.json") }
func (s *settings) machineFile() string { return filepath.Join(s.state, "machine.json") }
