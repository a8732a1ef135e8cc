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
	"strings"
	"time"
)

// errBroken means that a promised figure was not kept.
var errBroken = errors.New("a promise is broken")

// options are the flags.
type options struct {
	quick, check bool
	restarts     int
	servers      []namedServer
	outlive      string
	docs         string
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
	flags.StringVar(&opts.outlive, "outlive", "", "measure this binary instead of building cmd/outlive")
	flags.StringVar(&opts.docs, "docs", "", "directory for BENCHMARKS.md and benchmarks.svg; default docs, or none with -quick")
	flags.Func("server", "also measure the restarts of a server, as NAME=COMMAND ARG… (repeatable)", func(text string) error {
		name, command, ok := strings.Cut(text, "=")
		if !ok || name == "" || len(strings.Fields(command)) == 0 {
			return fmt.Errorf("want NAME=COMMAND ARG…, got %q", text)
		}
		opts.servers = append(opts.servers, namedServer{name: name, command: strings.Fields(command)})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if opts.docs == "" && !opts.quick {
		root, err := moduleRoot()
		if err != nil {
			return opts, err
		}
		opts.docs = filepath.Join(root, "docs")
	}
	return opts, nil
}

// run builds, measures, reports and checks.
func run(opts options) error {
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
	found := &results{Machine: thisMachine(), Quick: opts.quick}
	var err error
	if found.Latency, err = b.latencies(); err != nil {
		return nil, err
	}
	runtime.GC()
	if found.Memory, err = b.memory(); err != nil {
		return nil, err
	}
	runtime.GC()
	servers := append([]namedServer{{name: "echo (Go)", command: []string{b.binaries.echo}}}, opts.servers...)
	if found.Gaps, err = b.gaps(servers); err != nil {
		return nil, err
	}
	if opts.restarts > 0 {
		if found.Restarts, err = b.restarts(opts.restarts); err != nil {
			return nil, err
		}
	}
	found.Took = time.Since(begin)
	return found, nil
}

// peerEnvironment keeps what outlive writes out of the user's directories.
func peerEnvironment(dir string) []string {
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
