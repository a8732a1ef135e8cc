package logline

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// of is an event of one generation, whose PID is 100 more.
func of(gen int, typ event.Type, restarts int, attrs ...slog.Attr) event.Event {
	e := ev(typ, restarts, attrs...)
	e.Generation, e.ServerPID, e.Message = gen, 100+gen, strings.ReplaceAll(string(typ), "_", " ")
	return e
}

// begun is the two events of a start.
func begun(gen, restarts int) []event.Event {
	return []event.Event{of(gen, event.ServerStarting, restarts), of(gen, event.ServerSpawned, restarts)}
}

// With processes besides the serving one, the watchdog's lines are about the server alone, because their readers must
// not take it for ended.
func TestProcessesBesideTheServer(t *testing.T) {
	serving := append(begun(0, 0), of(0, event.ServerReady, 0))
	standing := append(append(serving[:3:3], begun(1, 0)...), of(1, event.SpareReady, 0))
	source := func(s string) slog.Attr { return slog.String(event.KeySource, s) }
	tests := []struct {
		name   string
		before []event.Event
		events [][]event.Event
		want   string
	}{
		{"a spare comes and goes", serving, [][]event.Event{begun(1, 0), {of(1, event.SpareReady, 0), of(1, event.ServerExited, 0, code(1))}}, `
PROXY Starting spare server
PROXY Spare server running (PID: 101)
PROXY standby ready
PROXY Spare server exited (PID: 101, code: 1)`},
		{"a restart beside the server", serving, [][]event.Event{
			{of(0, event.RestartInitiated, 1, cause("requested"), source("watch"))}, begun(1, 1),
			{of(1, event.ServerReady, 1), of(1, event.RestartCompleted, 1), of(0, event.ServerExited, 1, code(143)), of(1, event.ServerExited, 1, code(0))},
		}, `
SUPERVISOR Restart requested, spawning new server (restart #1)
SUPERVISOR Starting MCP server (restart #1)
SUPERVISOR MCP server running (PID: 101)
PROXY server ready
PROXY restart completed
PROXY Old server exited (PID: 100, code: 143)
SUPERVISOR MCP server exited (code: 0)`},
		{"one that comes to nothing", serving, [][]event.Event{
			{of(0, event.RestartInitiated, 1, cause("requested"), source("tool"))}, begun(1, 1),
			{of(1, event.ServerExited, 1, code(1)), {Type: event.ReloadFailed, Level: slog.LevelError, Message: "No luck: exit 1\nlast stderr lines:\nboom",
				Attrs: []slog.Attr{slog.String(event.KeyHint, "try --reload replace")}}},
			begun(2, 1), {of(0, event.ServerExited, 1, code(0))},
		}, `
SUPERVISOR Restart requested, spawning new server (restart #1)
SUPERVISOR Starting MCP server (restart #1)
SUPERVISOR MCP server running (PID: 101)
PROXY New server exited (PID: 101, code: 1)
PROXY ERROR: No luck: exit 1
PROXY Hint: try --reload replace
PROXY Starting spare server
PROXY Spare server running (PID: 102)
SUPERVISOR MCP server exited (code: 0)`},
		{"a crash, and a spare takes over", standing, [][]event.Event{
			{of(0, event.ServerExited, 0, code(1)), of(0, event.ServerCrashed, 1, code(1)), of(0, event.RestartInitiated, 1, cause("crash")),
				of(1, event.ServerReady, 1)}, begun(2, 1), {of(1, event.ServerExited, 1, code(1))},
		}, `
SUPERVISOR MCP server exited (code: 1)
SUPERVISOR ERROR: Server crashed (exit code 1), restarting (restart #1)
PROXY server ready
PROXY Starting spare server
PROXY Spare server running (PID: 102)
SUPERVISOR MCP server exited (code: 1)`},
		{"a limit, and a spare takes over", standing, [][]event.Event{
			{of(0, event.RestartInitiated, 1, cause("requested"), source("limit")), of(1, event.ServerReady, 1)}, begun(2, 1),
			{of(0, event.ServerExited, 1, code(143))},
		}, `
SUPERVISOR Restart requested, spawning new server (restart #1)
PROXY server ready
PROXY Starting spare server
PROXY Spare server running (PID: 102)
PROXY Old server exited (PID: 100, code: 143)`},
		{"the breaker opens with a spare", standing, [][]event.Event{
			{of(0, event.ServerExited, 0, code(1)), of(1, event.ServerExited, 0, code(143))}, begun(2, 1),
		}, `
SUPERVISOR MCP server exited (code: 1)
PROXY Spare server exited (PID: 101, code: 143)
SUPERVISOR Starting MCP server (restart #1)
SUPERVISOR MCP server running (PID: 102)`},
		{"asleep with a spare, and needed again", standing, [][]event.Event{
			{of(0, event.ServerExited, 0, code(143)), of(0, event.ServerSlept, 0)}, begun(2, 0),
			{of(1, event.ServerExited, 0, code(143))}, {of(2, event.ServerExited, 0, code(0))},
		}, `
SUPERVISOR MCP server exited (code: 143)
SUPERVISOR server slept
SUPERVISOR Starting MCP server (restart #0)
SUPERVISOR MCP server running (PID: 102)
PROXY Old server exited (PID: 101, code: 143)
SUPERVISOR MCP server exited (code: 0)`},
		{"hung, or too much memory", serving, [][]event.Event{
			{of(0, event.ServerExited, 0, code(137)), of(0, event.ServerCrashed, 1, code(137)), of(0, event.RestartInitiated, 1, cause("unhealthy"))}, begun(1, 1),
			{of(1, event.ServerExited, 1, code(137)), of(1, event.ServerCrashed, 2, code(137)), of(1, event.RestartInitiated, 2, cause("memory"))},
		}, `
SUPERVISOR MCP server exited (code: 137)
SUPERVISOR ERROR: Server crashed (exit code 137), restarting (restart #1)
SUPERVISOR Starting MCP server (restart #1)
SUPERVISOR MCP server running (PID: 101)
SUPERVISOR MCP server exited (code: 137)
SUPERVISOR ERROR: Server crashed (exit code 137), restarting (restart #2)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &formatter{}
			said(n, tt.before...)
			var got []string
			for _, events := range tt.events {
				got = append(got, said(n, events...)...)
			}
			if d := cmp.Diff(strings.Split(strings.TrimPrefix(tt.want, "\n"), "\n"), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
