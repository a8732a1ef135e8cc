package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// watchEvery is how often outlive watch looks for runs that have begun since.
const watchEvery = 250 * time.Millisecond

const watchLong = `Show what happens to the servers and agents of this user on this machine, as it happens: the events of every running
outlive, of those that start later, and what the monitor sees and does. One line for each event, until interrupted. The past is not
shown: outlive dashboard has the last day, the audit logs have more.

With --json each line is that of the audit log with "instance", the name that other verbs take; events of the monitor have "agent"
in place of it. The events and their fields: https://github.com/outlive-mcp/outlive/blob/main/docs/OPERATIONS.md#audit-log

EXIT STATUS
  0  interrupted
  1  the sockets could not be read`

func newWatchEvents(io streams) *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show events of all servers and agents as they happen",
		Long:  watchLong,
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return watchEvents(ctx, io, home, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	defineHome(cmd.Flags(), &home)
	return cmd
}

func watchEvents(ctx context.Context, io streams, home string, asJSON bool) error {
	if _, err := askAll(ctx); err != nil {
		return fail(exitFailure, "%w", err)
	}
	out := logline.NewScreen(io.out)
	failed := make(chan error, 1)
	agents := watchHome(home)
	defer agents.close()
	c := collect.New(collect.Options{
		Dirs: socketDirs(), Home: agents.look, HomeNews: agents.ended(), Every: watchEvery,
		OnEvent: func(e overview.Event, line []byte) {
			var err error
			if asJSON {
				_, err = io.out.Write(append(eventJSON(e, line), '\n'))
			} else {
				_, err = fmt.Fprintln(out, eventText(e))
			}
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		},
	})
	defer c.Close()
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	for {
		c.State() // keeps it looking often
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fail(exitFailure, "%w", err)
		case <-every.C:
		}
	}
}

// eventText is one event for people.
func eventText(e overview.Event) string {
	who := e.Instance
	if e.Agent != "" || who == "" {
		who = "monitor"
	}
	return e.At.Local().Format("15:04:05.000") + " " + who + ": " + e.Message
}

// eventJSON is one event for programs: the line of the audit log with the instance, or the same fields of the monitor's.
func eventJSON(e overview.Event, line []byte) []byte {
	if line == nil {
		text, _ := json.Marshal(struct { // strings and numbers only: no error
			Timestamp time.Time `json:"timestamp"`
			Level     string    `json:"level"`
			Message   string    `json:"message"`
			Type      string    `json:"event_type"`
			Agent     string    `json:"agent"`
			PID       int       `json:"monitor_pid,omitempty"`
		}{e.At.UTC(), e.Level, e.Message, string(e.Type), e.Agent, e.PID})
		return text
	}
	name, _ := json.Marshal(e.Instance)
	out := append([]byte(`{"instance":`), name...)
	return append(append(out, ','), line[1:]...)
}
