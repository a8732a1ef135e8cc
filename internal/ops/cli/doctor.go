package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// doctorFlags are the flags of `outlive doctor` as they were given.
type doctorFlags struct {
	clientFlags
	sweep   bool
	noStart bool
	chosen  bool // the project was named
	asJSON  bool
	timeout time.Duration
	// installTime is how long a launcher may install; progress is the terminal that hears of it, nil without one.
	installTime time.Duration
	progress    io.Writer
}

// diagnosis is what outlive doctor shows.
type diagnosis struct {
	Mechanisms []child.Mechanism `json:"mechanisms"`
	Strays     []child.Stray     `json:"strays"`
	Files      []fileReport      `json:"files"`
	Servers    []serverReport    `json:"servers"`
}

func newDoctor(io streams) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check AI clients' servers, what this machine offers, and look for processes left over",
		Long: `Check the set-up of this machine:

  - what there is against processes that outlive their server, and such that an outlive which is gone has left behind;
  - the servers in the configuration of each AI client. Each one is started as the client would start it, without
    outlive in front: is the command found, does the server answer the handshake, of which era is it and how long does
    it take, does it print on stdout what is not a message, does it end when its stdin is closed, does it leave
    processes behind. Four are looked at side by side. With --no-start nothing is started. Servers in the files of the
    project in the working directory are only listed; --project DIR starts those of DIR. npx, uvx, bunx, docker and the
    like install a server first: that is waited for (--install-timeout), and one that has to be ended has the time to
    undo what it has begun, after Ctrl-C, too; a second Ctrl-C ends it all at once.

EXIT STATUS
  0  all is well; warnings do not count
  1  a server does not work, a file cannot be read, strays were found, or something could not be looked for
  2  a mistake in the command line`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.chosen = cmd.Flags().Changed("project")
			if term.IsTerminal(io.err.Fd()) {
				f.progress = logline.NewScreen(io.err)
			}
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once
			return f.run(ctx, io)
		},
	}
	f.define(cmd.Flags(), ".", `the project whose files are looked at too; its servers are started only if it is named; "" for none`)
	cmd.Flags().BoolVar(&f.noStart, "no-start", false, "do not start the servers, only look whether their commands are found")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "how long a server may take to answer")
	cmd.Flags().DurationVar(&f.installTime, "install-timeout", launcher.InstallTime, "how long npx, uvx, bunx, docker and the like may install a server before that")
	cmd.Flags().BoolVar(&f.sweep, "sweep", false, "end the leftover processes; what cannot be identified is left alone")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "as a JSON object")
	return cmd
}

func (f *doctorFlags) run(ctx context.Context, io streams) error {
	d := diagnosis{Mechanisms: child.Mechanisms()}
	var swept error
	if f.sweep {
		tell := io.out
		if f.asJSON {
			tell = io.err
		}
		swept = endStrays(ctx, tell)
	}
	strays, looked := leftOver(child.Strays)
	if looked != nil {
		looked = fail(exitFailure, "look for leftover processes: %w", looked)
	}
	d.Strays = append([]child.Stray{}, strays...) // JSON has a list, also of none
	missing := f.examine(ctx, &d)
	if code, ok := errors.AsType[*exitError](missing); ok && code.code == exitUsage {
		return missing
	}
	if err := f.show(io.out, d); err != nil {
		return err
	}
	var wrong error
	switch n := d.failures(); n {
	case 0:
	case 1:
		wrong = fail(exitFailure, "1 server or file is not in order")
	default:
		wrong = fail(exitFailure, "%d servers or files are not in order", n)
	}
	if len(d.Strays) > 0 {
		swept = errors.Join(swept, fail(exitFailure, "%d processes are left over; outlive doctor --sweep ends them, and so does the next outlive run", len(d.Strays)))
	}
	return asFailure(errors.Join(swept, looked, missing, wrong))
}

// keeperTime is how long the keeper of an outlive that has just ended may take to end what is left, with room to spare.
const keeperTime = time.Second

// leftOver looks for strays, and gives a keeper that is still at work its time, as the sweep does. What has lost its outlive
// only meanwhile has a keeper with time of its own.
func leftOver(strays func() ([]child.Stray, error)) ([]child.Stray, error) {
	began := time.Now()
	first, err := strays()
	left := first
	for err == nil && len(left) > 0 && time.Since(began) < keeperTime {
		time.Sleep(keeperTime / 20)
		left, err = strays()
		left = slices.DeleteFunc(left, func(s child.Stray) bool {
			return !slices.ContainsFunc(first, func(f child.Stray) bool { return f.Outlive == s.Outlive })
		})
	}
	return left, err
}

func (f *doctorFlags) show(w io.Writer, d diagnosis) error {
	if f.asJSON {
		return encodeJSON(w, d)
	}
	w = logline.NewScreen(w)
	if err := printMechanisms(w, d.Mechanisms); err != nil {
		return err
	}
	if len(d.Strays) == 0 {
		fmt.Fprintln(w, "No process is left over.")
	}
	tellStrays(w, d.Strays)
	fmt.Fprintln(w)
	return d.printClients(w)
}

func printMechanisms(w io.Writer, mechanisms []child.Mechanism) error {
	var rows [][]string
	for _, m := range mechanisms {
		used := "no"
		if m.InUse {
			used = "yes"
		}
		rows = append(rows, []string{m.Name, used, m.Detail})
	}
	return printTable(w, []string{"MECHANISM", "IN USE", "DETAIL"}, rows)
}

func tellStrays(w io.Writer, strays []child.Stray) {
	for _, s := range strays {
		fmt.Fprintf(w, "left over: %d (of outlive %d) %s\n", s.PID, s.Outlive, s.Command)
	}
}

func endStrays(ctx context.Context, w io.Writer) error {
	report, err := child.SweepStrays(ctx)
	if err != nil {
		return fail(exitFailure, "sweep: %w", err)
	}
	tellStrays(w, report.Found)
	fmt.Fprintln(w, report)
	if len(report.Left) > 0 {
		return fail(exitFailure, "%d processes are still there", len(report.Left))
	}
	return nil
}
