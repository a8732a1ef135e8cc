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

	read tokensRead
}

// usage is the error of a mistake in the command line.
type usage struct{ error }

func wrong(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

func main() {
	service.SignalCrashes(os.Getenv)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(logline.NewScreen(os.Stderr), "outlive: "+err.Error())
	stop()
	var ours failed
	if errors.As(err, &ours) {
		os.Exit(1)
	}
	os.Exit(2) // cobra's own errors are usage errors, as ours are
}

// failed is the error of what could not be done.
type failed struct{ error }

func (f failed) Unwrap() error { return f.error }

// does makes a verb's error one of what could not be done, unless it is a mistake in the command line.
func does(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var u usage
		if err == nil || errors.As(err, &u) {
			return err
		}
		return failed{err}
	}
}

func command() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use: "fleet", SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "outlive fleet"},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if s.state == "" || s.socket == "" {
				return wrong("start it as: outlive fleet; see docs/FLEET.md")
			}
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
	root.AddCommand(newHub(&s), newToken(&s), newJoin(&s), newStatus(&s), newLeave(&s), newNATSUser(&s))
	return root
}

func (s *settings) hubDir() string      { return filepath.Join(s.state, "hub") }
func (s *settings) memberFile() string  { return filepath.Join(s.state, "member.json") }
func (s *settings) machineFile() string { return filepath.Join(s.state, "machine.json") }
