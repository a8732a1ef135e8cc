package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/program"
)

// parts are what -only chooses from, in the order in which they are measured.
var parts = []string{"load", "kills", "checks", "sessions", "backends", "lazy"}

// options are the flags.
type options struct {
	quick   bool
	docs    string
	outlive string
	peers   string
	only    []string
	names   []string
	extra   []gateway
}

// bench is one run.
type bench struct {
	dir           string
	echo, outlive string
	peers         string
	gateways      []gateway
	curved        []gateway // these, and those that are measured in the curves only
	missing       []string
	failures      []string
	plan          plan
	say           func(format string, args ...any)
	started       int
}

// fail notes what could not be measured; the run goes on.
func (b *bench) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.say("FAILED: %s", text)
	text, _, _ = strings.Cut(text, "\n")
	b.failures = append(b.failures, fmt.Sprintf("%.200s", text))
}

func main() {
	opts, err := parseFlags(os.Args[1:])
	if err == nil {
		err = run(opts)
	}
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/gateway:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("bench/gateway", flag.ContinueOnError)
	flags.BoolVar(&opts.quick, "quick", false, "measure a little of everything and write nothing")
	flags.StringVar(&opts.docs, "docs", "", "directory of BENCHMARKS.md and gateway.svg; default docs, or none with -quick, -only or -gateways")
	flags.StringVar(&opts.outlive, "outlive", "", "measure this binary instead of building cmd/outlive")
	flags.StringVar(&opts.peers, "peers", "", "directory of the other gateways, made by bench/gateway/peers.sh")
	flags.Func("only", "measure only these: "+strings.Join(parts, ","), func(text string) error {
		opts.only = strings.Split(text, ",")
		for _, part := range opts.only {
			if !slices.Contains(parts, part) {
				return fmt.Errorf("there is no %q; there are %s", part, strings.Join(parts, ","))
			}
		}
		return nil
	})
	flags.Func("gateways", "measure only the gateways whose names contain one of these words, separated by commas", func(text string) error {
		opts.names = strings.Split(text, ",")
		return nil
	})
	flags.Func("peer", "also measure NAME=COMMAND ARG…, where {server} is the server's path, {port} the port to listen on and "+
		"{config} a file of the form {\"mcpServers\": …} (repeatable)",
		func(text string) error {
			name, command, ok := strings.Cut(text, "=")
			line := strings.Fields(command)
			if !ok || name == "" || len(line) == 0 || !strings.Contains(command, "{port}") {
				return fmt.Errorf("want NAME=COMMAND ARG… with {port} in it, got %q", text)
			}
			opts.extra = append(opts.extra, gateway{name: name, program: line[0], settings: "`" + command + "`",
				many: strings.Contains(command, "{config}"), setup: words(line[1:]...)})
			return nil
		})
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return opts, nil
}

// run builds, measures and reports.
func run(opts options) error {
	dir, err := os.MkdirTemp("", "outlive-bench-gateway-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	b, root, err := prepare(dir, opts)
	if err != nil {
		return err
	}
	found := b.measure(opts)
	fmt.Print(found.terminal())
	if opts.docs == "" {
		if opts.quick || opts.only != nil || opts.names != nil {
			return nil
		}
		opts.docs = filepath.Join(root, "docs")
	}
	return found.write(opts.docs)
}

// measure takes all parts, or those that are asked for.
func (b *bench) measure(opts options) results {
	begin := time.Now()
	found := results{Machine: figures.ThisMachine(), Missing: b.missing, Plan: b.plan, Loads: map[int][]load{}, Busy: "Before the run " + b.busy()}
	for _, g := range b.curved {
		found.Gateways = append(found.Gateways, gatewayNote{g.name, g.version, g.settings})
	}
	wanted := func(part string) bool { return opts.only == nil || slices.Contains(opts.only, part) }
	if wanted("load") {
		for _, n := range b.plan.Connections {
			found.Loads[n] = b.loads(n)
		}
	}
	if wanted("kills") {
		found.Kills = b.killings()
	}
	if wanted("checks") && (b.plan.Checks || opts.only != nil) {
		found.Checks, found.CheckedWith = b.checks(), "mcp "+b.sdkVersion()
	}
	if wanted("sessions") {
		found.Growth = b.sessionCurves()
	}
	if wanted("backends") {
		found.Backends = b.backendCurves()
	}
	if wanted("lazy") {
		var err error
		if found.Lazy, err = b.lazy(); err != nil {
			b.fail("%v", err)
		}
	}
	found.Took, found.Failures = time.Since(begin), b.failures
	found.Busy += "; after it " + b.busy()
	return found
}

// busy says what the machine does while nothing of this runs.
func (b *bench) busy() string {
	b.say("looking what else the machine does")
	busy, all := processorTimes()
	time.Sleep(3 * time.Second)
	busyThen, allThen := processorTimes()
	text := "the system did not tell how busy other programs kept it"
	if allThen > all {
		text = fmt.Sprintf("other programs kept the processors %.0f %% busy", 100*(busyThen-busy)/(allThen-all))
	}
	if average, err := os.ReadFile("/proc/loadavg"); err == nil {
		one, _, _ := strings.Cut(string(average), " ")
		text += ", load average " + one
	}
	return text
}

// sayer tells on stderr what is being done, with the seconds since it began.
func sayer() func(format string, args ...any) {
	begin := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
}

// prepare builds what is measured and finds the others.
func prepare(dir string, opts options) (*bench, string, error) {
	root, err := program.Root()
	if err != nil {
		return nil, "", err
	}
	b := &bench{dir: dir, plan: planFor(opts.quick), say: sayer()}
	b.say("building")
	if b.echo, err = program.Build(dir, "bench/echo"); err != nil {
		return nil, "", err
	}
	if b.outlive, err = program.Given(opts.outlive, dir, "cmd/outlive"); err != nil {
		return nil, "", err
	}
	if opts.peers != "" {
		if b.peers, err = filepath.Abs(opts.peers); err != nil {
			return nil, "", fmt.Errorf("find peers: %w", err)
		}
	}
	b.gateways, b.missing = findGateways(b.outlive, b.peers)
	b.gateways = append(b.gateways, opts.extra...)
	if opts.names != nil {
		b.gateways = slices.DeleteFunc(b.gateways, func(g gateway) bool {
			return !slices.ContainsFunc(opts.names, func(word string) bool { return strings.Contains(g.name, word) })
		})
	}
	b.curved = b.gateways
	b.gateways = slices.DeleteFunc(slices.Clone(b.curved), func(g gateway) bool { return g.curves })
	return b, root, nil
}
