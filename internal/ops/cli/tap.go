package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/record/tap"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// tapFlags are the flags of outlive tap.
type tapFlags struct {
	tools  []string
	errors bool
	bodies bool
	json   bool
}

const tapLong = `Show the messages between the client and the server NAME while they pass, both directions, one line for each, until interrupted or
until its outlive ends:

  14:03:07.123  →          tools/call echo   7     120 B
  14:03:07.131  ←          tools/call echo   7     340 B  8.1 ms  ok
  14:03:09.200  → outlive  tools/call echo   8     100 B  held

→ is what the client says, ← what the server says. With "outlive" beside it the message is from outlive, or goes no further for now: what
it holds until a server is ready, repeats to a new process, sends again, or answers itself. The number is the request's id.

All servers of a gateway are shown, with the server and the client, unless NAME is GATEWAY/SERVER. Calls are never slowed down by it: if
messages come faster than they can be shown, some are left out, and a line says how many. What a message says is shown only with --bodies,
with secrets replaced by [redacted], as far as they can be recognised by their form or their name. Nothing is stored; to keep it, write
--json --bodies and send it into a file. More: https://github.com/outlive-mcp/outlive/blob/main/docs/TAP.md

EXIT STATUS
  0  interrupted, or its outlive has ended
  1  no such server
  2  the name is ambiguous`

func newTap(io streams) *cobra.Command {
	f := &tapFlags{}
	cmd := &cobra.Command{
		Use:               "tap NAME",
		Short:             "Show the messages between a client and its server as they pass",
		Long:              tapLong,
		Args:              takesRunning,
		ValidArgsFunction: completeRunning,
		RunE:              interruptibly(func(ctx context.Context, args []string) error { return f.run(ctx, io, args[0]) }),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.tools, "tool", nil, "only calls of this tool and their answers (may be repeated)")
	fl.BoolVar(&f.errors, "errors", false, "only what went wrong: errors, failed tools, unknown outcomes, and what was refused")
	fl.BoolVar(&f.bodies, "bodies", false, "also what the messages say, with secrets replaced")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line")
	return cmd
}

func (f *tapFlags) run(ctx context.Context, io streams, name string) error {
	instance, err := findInstance(name)
	if err != nil {
		return err
	}
	status, err := instance.Status(ctx)
	if err != nil {
		return fail(exitFailure, "tap %s: %w", name, err)
	}
	v := &tapView{flags: f, out: bufio.NewWriter(logline.NewScreen(io.out)), several: len(status.Servers) > 0}
	if err := v.watch(ctx, io, instance); err != nil {
		return fail(exitFailure, "tap %s: %w", name, err)
	}
	return nil
}

// tapView shows messages.
type tapView struct {
	flags   *tapFlags
	out     *bufio.Writer
	several bool // it shows whose messages they are
}

// watch shows messages until ctx or the instance ends. An instance that has become another version goes on under its number.
func (v *tapView) watch(ctx context.Context, to streams, i control.Instance) error {
	for {
		err := i.Messages(ctx, v.flags.bodies, func() { fmt.Fprintf(to.err, "outlive: watching %s\n", logline.Printable(i.Label())) }, v.message)
		if flushed := v.out.Flush(); err == nil {
			err = flushed
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !stillThere(ctx, i) {
			fmt.Fprintf(to.err, "outlive: %s has ended\n", logline.Printable(i.Name))
			return nil
		}
	}
}

// upgradeTakes is how long the next version may take to be there.
const upgradeTakes = 2 * time.Second

// stillThere reports whether the instance answers, as after an upgrade.
func stillThere(ctx context.Context, i control.Instance) bool {
	ctx, cancel := context.WithTimeout(ctx, upgradeTakes)
	defer cancel()
	for {
		if _, err := i.Status(ctx); err == nil {
			return true
		}
		if _, err := (process.System{}).Look(i.PID); err != nil {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(waitEvery):
		}
	}
}

// message takes one line of the stream.
func (v *tapView) message(line []byte, more bool) error {
	m, err := tap.Parse(line)
	if err != nil {
		return fmt.Errorf("a message that cannot be read: %w", err)
	}
	if v.flags.wants(&m) {
		if err := v.show(&m, line); err != nil {
			return err
		}
	}
	if more {
		return nil
	}
	return v.out.Flush()
}

// wants reports whether a message is to be shown.
func (f *tapFlags) wants(m *tap.Record) bool {
	switch {
	case m.LeftOut > 0:
		return true
	case f.errors && !m.Bad():
		return false
	case len(f.tools) == 0:
		return true
	}
	return m.Method == "tools/call" && slices.Contains(f.tools, m.Target)
}

func (v *tapView) show(m *tap.Record, line []byte) error {
	text := v.text(m)
	if v.flags.json {
		text = string(line) + "\n"
	}
	_, err := v.out.WriteString(text)
	return err
}

// text is a message for people.
func (v *tapView) text(m *tap.Record) string {
	at := m.Timestamp.Local().Format("15:04:05.000")
	if m.LeftOut > 0 {
		return fmt.Sprintf("%s  %d messages left out\n", at, m.LeftOut)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-9s  ", at, arrow(m.From, m.To))
	if v.several {
		fmt.Fprintf(&b, "%-14s  %-14s  ", logline.Printable(m.Server), logline.Printable(m.Client))
	}
	what := cmp.Or(strings.TrimSpace(m.Method+" "+m.Target), string(m.Kind))
	fmt.Fprintf(&b, "%-36s  %-6s %9s", logline.Printable(what), logline.Printable(string(m.ID)), sizeText(m.Size))
	if c := m.Call; c != nil {
		fmt.Fprintf(&b, "  %s", tookText(c.DurationMS))
		if c.HeldMS >= 1 {
			fmt.Fprintf(&b, ", held %s", tookText(c.HeldMS))
		}
		if c.Sends > 1 {
			fmt.Fprintf(&b, ", sent %d times", c.Sends)
		}
		b.WriteString("  " + outcomeText(m))
	} else if m.Kind == tap.Error {
		b.WriteString("  error")
	}
	if m.Note != "" && m.Note != tap.NoteChanged {
		b.WriteString("  " + m.Note)
	}
	b.WriteByte('\n')
	if v.flags.bodies && m.Body != nil {
		b.Write(append(append([]byte("    "), m.Body...), '\n'))
	}
	return b.String()
}

// arrow is who says something to whom.
func arrow(from, to tap.Party) string {
	switch {
	case from == tap.Client && to == tap.Server:
		return "→"
	case from == tap.Server && to == tap.Client:
		return "←"
	case to == tap.Server:
		return "outlive →"
	case from == tap.Server:
		return "outlive ←"
	case from == tap.Client:
		return "→ outlive"
	}
	return "← outlive"
}

// outcomeText is how a call ended.
func outcomeText(m *tap.Record) string {
	c := m.Call
	text := map[tap.Outcome]string{
		tap.ToolError: "tool error", tap.Unknown: "outcome unknown", tap.TimedOut: "timed out",
	}[c.Outcome]
	text = cmp.Or(text, string(c.Outcome))
	if c.Code != 0 && c.Outcome == tap.Failed {
		text += fmt.Sprintf(" %d", c.Code)
	}
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	return text
}

func sizeText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}

func tookText(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
