package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

const hostsHelp = `

With --hosts it is done on other machines, over your own ssh: --hosts a,b names them as ssh takes them, "all" is every host of
the hosts file, @FILE those of another file, and localhost this machine. What is there is called HOST/NAME. How that works, and
what is in the hosts file: https://github.com/outlive-mcp/outlive/blob/main/docs/HOSTS.md

With --fleet it is done on all machines of the fleet that this one has joined with "outlive fleet join":
https://github.com/outlive-mcp/outlive/blob/main/docs/FLEET.md`

// hostFlags are the flags of verbs that can be about other machines.
type hostFlags struct {
	list  string
	fleet bool
	limit time.Duration
}

// define adds the flags to a verb that has its RunE. With one of them a signal ends what the verb does there, and the ssh that it has
// started.
func (f *hostFlags) define(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.list, "hosts", "", "on other machines, over ssh: `HOST,…`, all, or @FILE")
	fl.BoolVar(&f.fleet, "fleet", false, "on all machines of the fleet of this one")
	fl.DurationVar(&f.limit, "hosts-timeout", 10*time.Second, "with --hosts and --fleet: how long a host has to answer")
	cmd.Long += hostsHelp
	// It fails only for a flag that there is not, or one that is completed already.
	_ = cmd.RegisterFlagCompletionFunc("hosts", completeHosts)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.given() {
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			cmd.SetContext(ctx)
		}
		return run(cmd, args)
	}
}

func (f *hostFlags) given() bool { return f.list != "" || f.fleet }

// hostsFile is where the names of hosts are, one a line.
func hostsFile() string { return filepath.Join(configDir(), "hosts") }

func (f *hostFlags) set(ctx context.Context) (*hosts.Set, error) {
	if f.limit <= 0 {
		return nil, fail(exitUsage, "--hosts-timeout %s: must be above 0", f.limit)
	}
	switch {
	case f.fleet && f.list != "":
		return nil, fail(exitUsage, "--fleet and --hosts are two ways to other machines: give one of them")
	case f.fleet:
		return f.fleetSet(ctx)
	}
	list, err := hosts.Resolve(f.list, hostsFile())
	if err != nil {
		return nil, fail(exitUsage, "--hosts: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fail(exitFailure, "%w", err)
	}
	return hosts.NewSet(list, hosts.Options{
		SSH:  strings.Fields(os.Getenv("OUTLIVE_SSH")), // another program than ssh, with its first arguments
		Self: self, Version: version(), Limit: f.limit,
	}), nil
}

// askedBy is the machine of the fleet for which this command runs; "": a user's own.
func askedBy() string { return os.Getenv("OUTLIVE_ASKED_BY") }

// named are the hosts of the flags that are meant where a thing is called by its name: HOST/NAME selects one of them.
func (f *hostFlags) named(ctx context.Context, name string) (set *hosts.Set, rest string, err error) {
	if set, err = f.set(ctx); err != nil {
		return nil, "", err
	}
	host, rest, cut := strings.Cut(name, "/")
	if h, ok := set.Named(host); ok && cut {
		return set.Of(h), rest, nil
	}
	return set, name, whole(set) // a machine that is missing may have one of that name, too
}

func completeHosts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := hosts.Read(hostsFile())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // there is nobody to tell
	}
	names := []string{hosts.All}
	for _, h := range list {
		names = append(names, h.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// hostRecord is what one host said, for programs.
type hostRecord struct {
	Host    string          `json:"host"`
	Version string          `json:"version,omitempty"` // of outlive there
	Error   *hostError      `json:"error,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"` // as outlive there gave it
}

type hostError struct {
	Kind string `json:"kind"` // no answer, no connection, no outlive, failed, not understood
	Text string `json:"text"`
}

// told is an answer that was read.
type told[T any] struct {
	hosts.Answer
	value T
}

// read reads an answer as JSON. Members that are not known are ignored: another version may be there.
func read[T any](a hosts.Answer) told[T] {
	r := told[T]{Answer: a}
	if a.Err != nil {
		return r
	}
	err := hosts.Decode(a.Out, &r.value)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !other { // all else is read
		r.Err = &hosts.Failure{Kind: hosts.Unreadable, Text: fmt.Sprintf("%v; outlive is %s there, and %s here", err, cmp.Or(a.Version, "unknown"), version())}
	}
	return r
}

// askJSON asks all hosts and writes one JSON array of what they said, in the order of the list.
func askJSON(ctx context.Context, w io.Writer, set *hosts.Set, args []string) error {
	records := []hostRecord{}
	bad := 0
	for _, a := range askedAll[json.RawMessage](ctx, set, args) {
		r := hostRecord{Host: a.Host.Name, Version: a.Version}
		if a.Err != nil {
			bad++
			r.Error = &hostError{hosts.KindOf(a.Err).Word(), a.Err.Error()}
		}
		if answer := bytes.TrimSpace(a.Out); json.Valid(answer) { // also one that says what has failed
			r.Answer = answer
		}
		records = append(records, r)
	}
	if err := encodeJSON(w, records); err != nil {
		return err
	}
	return missed(bad)
}

// missed is the error of hosts that have not answered, which was told already.
func missed(bad int) error { return exitWith(min(bad, exitFailure)) }

// settling is how long the first rows wait for those of other hosts, so that most tables come at once and in order.
const settling = time.Second

// inBatches asks all hosts and shows what they said: those that answer at about the same time together, in the order of the
// list, and each later one as it comes. So a host that does not answer holds nobody up. It returns how many did not answer.
func inBatches[T any](ctx context.Context, set *hosts.Set, args []string, show func([]told[T])) (bad int) {
	answers := make(chan told[T])
	go func() {
		defer close(answers)
		set.Ask(ctx, args, func(a hosts.Answer) { answers <- read[T](a) })
	}()
	var batch []told[T]
	var settled <-chan time.Time
	flush := func() {
		place := func(a told[T]) int { return slices.Index(set.Hosts, a.Host) }
		slices.SortFunc(batch, func(a, b told[T]) int { return cmp.Compare(place(a), place(b)) })
		if len(batch) > 0 {
			show(batch)
		}
		batch = nil
	}
	late := false // what comes now is shown as it comes
	for {
		select {
		case a, more := <-answers:
			if !more {
				flush()
				return bad
			}
			if a.Err != nil {
				bad++
			}
			batch = append(batch, a)
			if late {
				flush()
			} else if settled == nil {
				settled = time.After(settling)
			}
		case <-settled:
			late, settled = true, nil
			flush()
		}
	}
}

// columns writes rows of a table in parts: what comes later stands below what was there.
type columns struct {
	to     io.Writer
	widths []int
}

const columnGap = 2

// printTable writes a table at once.
func printTable(w io.Writer, heading []string, rows [][]string) error {
	return (&columns{to: w}).write(append([][]string{heading}, rows...))
}

func (c *columns) write(rows [][]string) error {
	for _, row := range rows {
		for n, cell := range row {
			if n == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[n] = max(c.widths[n], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for n, cell := range row {
			line += cell + strings.Repeat(" ", c.widths[n]-utf8.RuneCountInString(cell)+columnGap)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(c.to, text.String())
	return err
}

// hostTable is a table of what several hosts said, with notes below it.
type hostTable struct {
	columns
	set     *hosts.Set
	heading []string
	notes   bytes.Buffer
}

// tellVersion tells a version that is another one.
func (t *hostTable) tellVersion(a hosts.Answer) {
	if t.set.Differs(a.Version) {
		t.note(fmt.Sprintf("%s: outlive is %s there, and %s here", a.Host.Name, a.Version, version()))
	}
}

// add writes rows, below the heading if they are the first.
func (t *hostTable) add(rows [][]string) {
	if t.heading != nil {
		rows = append([][]string{t.heading}, rows...)
		t.heading = nil
	}
	_ = t.write(rows) // the notes are written to the same place
}

// silent is the row of a host that gave no answer, and says why below the table.
func (t *hostTable) silent(a hosts.Answer) []string {
	word := hosts.KindOf(a.Err).Word()
	t.note(a.Host.Name + ": " + word + ": " + strings.ReplaceAll(a.Err.Error(), "\n", "\n  "))
	t.tellVersion(a)
	return []string{logline.Printable(a.Host.Name), word}
}

func (t *hostTable) note(text string) { fmt.Fprintln(&t.notes, text) }

func (t *hostTable) end() error {
	_, err := t.to.Write(t.notes.Bytes())
	return err
}
