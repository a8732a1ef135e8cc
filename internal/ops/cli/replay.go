package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/recording"
)

// replayFlags are the flags of outlive replay.
type replayFlags struct {
	ignore     []string
	timeout    time.Duration
	connection uint64
	json       bool
}

const replayLong = `Play a recording of outlive tap --record against a server, and show which answers are different now. It is a regression test for
whoever develops a server: record a session once, play it after each change.

The command is started and gets the recorded handshake, then each request in the recorded order, one after the other. Results and errors
are compared by their JSON values: the order of members does not count, and neither do ids and times taken. What the server asks its
client is answered as recorded. A member that is always different, such as a time, is left out with --ignore:

  outlive replay session.jsonl --ignore result.structuredContent.time --ignore 'result.content[*].text' -- node server.js

Calls take effect as they did when they were recorded. Secrets were replaced when it was recorded: requests that had some are played with
[redacted] in their place, and say so when they answer differently. More: https://github.com/outlive-mcp/outlive/blob/main/docs/TAP.md

EXIT STATUS
  0  all answers are the same
  1  some are different, or the server could not be started, ended, or gave no answer in time
  2  the file is not a recording, or a flag is wrong`

func newReplay(io streams) *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:         "replay FILE -- COMMAND [ARG]...",
		Short:       "Play a recording of tap against a server, and show what it answers differently",
		Long:        replayLong,
		Annotations: map[string]string{keepsAlive: "yes"},
		Args:        takes(2, -1),
		RunE:        interruptibly(func(ctx context.Context, args []string) error { return f.run(ctx, io, args[0], args[1:]) }),
	}
	fl := cmd.Flags()
	fl.SetInterspersed(true)
	fl.StringArrayVar(&f.ignore, "ignore", nil, "a member of the answers that is not compared, such as result.structuredContent.time; * is any name or index (may be repeated)")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "how long one answer may take")
	fl.Uint64Var(&f.connection, "connection", 0, "which one of a recording of several is played")
	fl.BoolVar(&f.json, "json", false, "one JSON object for each request")
	return cmd
}

func (f *replayFlags) run(ctx context.Context, to streams, path string, command []string) error {
	o := recording.Options{Timeout: f.timeout}
	for _, text := range f.ignore {
		p, err := recording.ParsePath(text)
		if err != nil {
			return fail(exitUsage, "--ignore: %w", err)
		}
		o.Ignore = append(o.Ignore, p)
	}
	rec, err := recording.Read(path)
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	script, err := rec.Script(f.connection)
	if errors.Is(err, recording.ErrSeveral) {
		return fail(exitUsage, "%w with --connection N", err)
	}
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	if script.Requests() == 0 {
		return fail(exitUsage, "%s has no requests of a client", path)
	}
	v := &replayView{out: logline.NewScreen(to.out), json: f.json}
	if rec.LeftOut > 0 {
		fmt.Fprintf(to.err, "outlive: the recording lacks %d messages, which tap has left out\n", rec.LeftOut)
	}
	err = playAgainst(ctx, to, command, script, o, v.answer)
	if _, unstarted := errors.AsType[*exitError](err); unstarted {
		return err
	}
	v.summary()
	if err != nil {
		return fail(exitFailure, "replay: %w", err)
	}
	if v.different > 0 {
		return &exitError{code: exitFailure}
	}
	return nil
}

// playAgainst starts a server, plays the script, and ends the server with all that it has started.
func playAgainst(ctx context.Context, to streams, command []string, script *recording.Script, o recording.Options, each func(recording.Answer) error) error {
	child.Prepare()
	gone := make(chan struct{})
	server, err := child.Start(child.Spec{Argv: command}, func(child.Status) { close(gone) })
	if err != nil {
		return startError(err)
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = io.Copy(to.err, server.Stderr()) // it ends with the server
	}()
	err = script.Play(ctx, server.Stdin(), server.Stdout(), o, each)
	_ = server.Stdin().Close()
	select {
	case <-gone:
	case <-time.After(leaves):
		_ = server.Kill() // it fails only for a process that is gone
		<-gone
	}
	_ = server.Stdout().Close()
	_ = server.Stderr().Close()
	<-said
	return err
}

// leaves is how long a server may take to end once its stdin is closed.
const leaves = 2 * time.Second

// replayView shows what comes of a replay.
type replayView struct {
	out                         io.Writer
	json                        bool
	same, different, uncompared int
}

func (v *replayView) answer(a recording.Answer) error {
	sign := "same"
	switch {
	case a.Uncompared != "":
		v.uncompared++
		sign = "not compared"
	case len(a.Differences) > 0:
		v.different++
		sign = "DIFFERS"
	default:
		v.same++
	}
	if v.json {
		line, err := json.Marshal(a)
		if err == nil {
			_, err = v.out.Write(append(line, '\n'))
		}
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s  %-36s  %s  %s", sign, logline.Printable(strings.TrimSpace(a.Method+" "+a.Target)), logline.Printable(a.ID), tookText(a.TookMS))
	if a.Uncompared != "" {
		b.WriteString("  " + a.Uncompared)
	}
	if a.Hidden && len(a.Differences) > 0 {
		b.WriteString("  (played without its secrets)")
	}
	b.WriteByte('\n')
	for _, d := range a.Differences {
		fmt.Fprintf(&b, "    %s\n      was %s\n      is  %s\n", logline.Printable(d.Path), valueText(d.Was), valueText(d.Is))
	}
	_, err := io.WriteString(v.out, b.String())
	return err
}

// valueText is a raw value for people.
func valueText(raw string) string {
	const most = 400
	if raw == "" {
		return "nothing"
	}
	if runes := []rune(raw); len(runes) > most {
		raw = string(runes[:most]) + "…"
	}
	return logline.Printable(raw)
}

func (v *replayView) summary() {
	if v.json {
		return
	}
	text := fmt.Sprintf("%d the same, %d different", v.same, v.different)
	if v.uncompared > 0 {
		text += fmt.Sprintf(", %d not compared", v.uncompared)
	}
	fmt.Fprintln(v.out, text)
}
