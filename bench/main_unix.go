//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/program"
)

// errBroken means that a promised figure was not kept.
var errBroken = errors.New("a promise is broken")

// options are the flags.
type options struct {
	quick, check bool
	restarts     int
	reloads      int
	servers      []namedServer
	launchers    []namedServer
	python       string
	only         string
	outlive      string
	docs         string
	faults       bool
	peers        string
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
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parseFlags reads the command line.
func parseFlags(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&opts.quick, "quick", false, "measure only what is promised, in about half a minute")
	flags.BoolVar(&opts.check, "check", false, "exit 1 when a promised figure is broken")
	flags.IntVar(&opts.restarts, "restarts", 0, "also restart the server this many times and compare what outlive holds before and after")
	flags.IntVar(&opts.reloads, "reloads", 0, "replace the server this many times under load instead of a few; each takes a second")
	flags.StringVar(&opts.python, "python", "python3", "interpreter of the server whose broken saves are measured")
	flags.StringVar(&opts.only, "only", "", "measure nothing but this: "+strings.Join(carePartNames, ", ")+"; writes nothing")
	flags.StringVar(&opts.outlive, "outlive", "", "measure this binary instead of building cmd/outlive")
	flags.StringVar(&opts.docs, "docs", "", "directory for BENCHMARKS.md and benchmarks.svg; default docs, or none with -quick")
	flags.BoolVar(&opts.faults, "faults", false, "measure the fault matrix instead: who is left when something is killed, here and with other supervisors")
	flags.StringVar(&opts.peers, "peers", "", "directory of the other supervisors, made by bench/peers.sh")
	flags.Func("server", "also measure the restarts of a server, as NAME=COMMAND ARG… (repeatable)", addServer(&opts.servers))
	flags.Func("launcher", "also measure a command that only starts a server, as NAME=COMMAND ARG… (repeatable)", addServer(&opts.launchers))
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if opts.only != "" && !slices.Contains(carePartNames, opts.only) {
		return opts, fmt.Errorf("-only %q: want one of %s", opts.only, strings.Join(carePartNames, ", "))
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if opts.docs == "" && !opts.quick && opts.only == "" {
		root, err := program.Root()
		if err != nil {
			return opts, err
		}
		opts.docs = filepath.Join(root, "docs")
	}
	return opts, nil
}

// addServer takes in a flag's NAME=COMMAND ARG….
func addServer(to *[]namedServer) func(string) error {
	return func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		if !ok || name == "" || len(strings.Fields(command)) == 0 {
			return fmt.Errorf("want NAME=COMMAND ARG…, got %q", text)
		}
		*to = append(*to, namedServer{name: name, command: strings.Fields(command)})
		return nil
	}
}

// run builds, measures, reports and checks.
func run(opts options) error {
	if opts.faults {
		return runFaults(opts)
	}
	dir, err := os.MkdirTemp("", "outlive-bench-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	progress := newProgress(os.Stderr)
	progress("building")
	built, err := buildAll(dir, opts.outlive)
	if err != nil {
		return err
	}
	b := &bench{binaries: built, env: peerEnvironment(dir), dir: dir, plan: planFor(opts.quick), progress: progress}
	found, err := b.measure(opts)
	progress("")
	if err != nil {
		return err
	}
	fmt.Print(terminalReport(found))
	if opts.docs != "" {
		if err := writeDocs(opts.docs, found); err != nil {
			return err
		}
	}
	for _, p := range promises(found) {
		if opts.check && !p.kept() {
			return errBroken
		}
	}
	return nil
}

// measure runs the whole plan on one locked thread without garbage collection,
// so that the client itself is not the noise.
func (b *bench) measure(opts options) (*results, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	begin := time.Now()
	found := &results{Machine: figures.ThisMachine(), Quick: opts.quick, Only: opts.only}
	servers := append([]namedServer{{name: "echo (Go)", command: []string{b.binaries.echo}}}, opts.servers...)
	if opts.only == "" {
		if err := b.measureRelay(opts, servers, found); err != nil {
			return nil, err
		}
	}
	for _, part := range b.careParts(opts, servers, &found.Care) {
		if opts.only != "" && opts.only != part.name {
			continue
		}
		if err := part.measure(); err != nil {
			return nil, err
		}
		runtime.GC()
	}
	found.Took = time.Since(begin)
	return found, nil
}

// measureRelay measures what outlive costs while nothing is wrong, and its plainest restarts.
func (b *bench) measureRelay(opts options, servers []namedServer, found *results) (err error) {
	if found.Latency, err = b.latencies(); err != nil {
		return err
	}
	runtime.GC()
	if found.Memory, err = b.memory(); err != nil {
		return err
	}
	runtime.GC()
	if found.Gaps, err = b.gaps(servers); err != nil {
		return err
	}
	if opts.restarts > 0 {
		found.Restarts, err = b.restarts(opts.restarts)
	}
	return err
}

// peerEnvironment keeps what outlive writes out of the user's directories.
func peerEnvironment(dir string) []string {
	dir = filepath.Join(dir, "home") // the binary beside it is called outlive, as the directory would be
	return append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir)
}

// progressEvery is how often progress is told where lines cannot be overwritten.
const progressEvery = 5 * time.Second

// newProgress returns a function that shows one line at a time: over the last
// one on a terminal; elsewhere below it, each stage's first and then one now
// and then.
func newProgress(to *os.File) func(format string, args ...any) {
	info, err := to.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	stage, told := "", time.Time{}
	return func(format string, args ...any) {
		if terminal {
			fmt.Fprintf(to, "\r\x1b[K"+format, args...)
			return
		}
		if format == "" || format == stage && time.Since(told) < progressEvery {
			return
		}
		fmt.Fprintf(to, format+"\n", args...)
		stage, told = format, time.Now()
	}
}
