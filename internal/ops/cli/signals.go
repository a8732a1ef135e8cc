package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// signalled is what signals do to what is kept alive. The log reports how renewing and upgrading went.
type signalled struct {
	interrupt func()
	renew     func() error                               // SIGHUP
	upgrade   func(context.Context, time.Duration) error // SIGUSR2; nil: that does nothing
}

// keepsAlive in a command's annotations, with any value, says that it keeps something alive.
const keepsAlive = "keeps-alive"

// surviveBrokenPipes makes a write to an unread stdout or stderr an ordinary error. Without it the Go runtime ends the
// program with SIGPIPE, and the server with it. It is called before anything is written. Children are not affected: an
// exec restores the default of a handled signal.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// dieOfBrokenPipes is for commands that only print: outlive logs -f | head is to end with head.
func dieOfBrokenPipes() { signal.Reset(syscall.SIGPIPE) }

// untilInterrupted is a context that ends with SIGINT, SIGTERM and the signals named. A verb that has started ssh needs it for that, too:
// ssh has a process group of its own.
func untilInterrupted(ctx context.Context, more ...os.Signal) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, append(more, os.Interrupt, syscall.SIGTERM)...)
}

// interruptibly is what a command runs with a context that ends as that of [untilInterrupted].
func interruptibly(run func(ctx context.Context, args []string) error, more ...os.Signal) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := untilInterrupted(cmd.Context(), more...)
		defer stop()
		return run(ctx, args)
	}
}

// handleSignals lets SIGINT and SIGTERM end the run, SIGHUP restart the server and SIGUSR2 upgrade outlive, until the
// returned function is called.
func handleSignals(k *sinks, on signalled) (stop func()) {
	got := make(chan os.Signal, 8)
	signal.Notify(got, append(upgradeSignals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)...)
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case <-quit:
				return
			case sig := <-got:
				handleSignal(k, on, sig)
			}
		}
	}()
	return func() {
		signal.Stop(got)
		close(quit)
	}
}

func handleSignal(k *sinks, on signalled, sig os.Signal) {
	switch {
	case sig == syscall.SIGHUP:
		go func() { _ = on.renew() }()
	case slices.Contains(upgradeSignals, sig):
		if on.upgrade != nil {
			go func() { _ = on.upgrade(context.Background(), momentPatience) }()
		}
	default:
		k.say(event.Interrupted, "Interrupted by "+sig.String(), slog.String(event.KeySignal, sig.String()))
		on.interrupt()
	}
}

// hangUp is what SIGHUP does to one server.
func hangUp(server keptAlive) func() error {
	return func() error { return server.Restart(context.Background(), supervise.SourceSignal, "SIGHUP") }
}
