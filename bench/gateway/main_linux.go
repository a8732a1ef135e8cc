package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/program"
)

// options are the flags.
type options struct {
	quick   bool
	docs    string
	outlive string
	peers   string
	extra   []gateway
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
	flags.BoolVar(&opts.quick, "quick", false, "measure for half a minute and write nothing")
	flags.StringVar(&opts.docs, "docs", "", "directory of BENCHMARKS.md and gateway.svg; default docs, or none with -quick")
	flags.StringVar(&opts.outlive, "outlive", "", "measure this binary instead of building cmd/outlive")
	flags.StringVar(&opts.peers, "peers", "", "directory of the other gateways, made by bench/gateway/peers.sh")
	flags.Func("peer", "also measure NAME=COMMAND ARG…, where {server} is the server's path and {port} the port to listen on (repeatable)",
		func(text string) error {
			name, command, ok := strings.Cut(text, "=")
			if !ok || name == "" || !strings.Contains(command, "{port}") {
				return fmt.Errorf("want NAME=COMMAND ARG… with {port} in it, got %q", text)
			}
			opts.extra = append(opts.extra, gateway{name: name, command: strings.Fields(command)})
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
	begin := time.Now()
	found := results{Machine: figures.ThisMachine(), Missing: b.missing, Connections: connections}
	if found.Loads, err = b.loads(); err != nil {
		return err
	}
	if found.Gaps, err = b.gaps(); err != nil {
		return err
	}
	if found.Lazy, err = b.lazy(); err != nil {
		return err
	}
	found.Took = time.Since(begin)
	fmt.Print(found.terminal())
	if opts.quick {
		return nil
	}
	if opts.docs == "" {
		opts.docs = filepath.Join(root, "docs")
	}
	return found.write(opts.docs)
}

// prepare builds what is measured and finds the others.
func prepare(dir string, opts options) (*bench, string, error) {
	root, err := program.Root()
	if err != nil {
		return nil, "", err
	}
	b := &bench{dir: dir, plan: planFor(opts.quick), say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	b.say("building")
	if b.echo, err = program.Build(dir, "bench/echo"); err != nil {
		return nil, "", err
	}
	if b.outlive, err = program.Given(opts.outlive, dir, "cmd/outlive"); err != nil {
		return nil, "", err
	}
	b.gateways, b.missing = known(opts.peers)
	b.gateways = append(b.gateways, opts.extra...)
	return b, root, nil
}
