// Command bench measures what outlive costs, part by part, side by side with other programs where there are any:
//
//	go run ./bench -list                       the parts, and what each measures
//	go run ./bench run                         one part; rewrites its section of docs/BENCHMARKS.md
//	go run ./bench run -quick                  what is promised and a little more, within two minutes; writes nothing
//	go run ./bench run -only reloads,taps      some of its measurements; writes nothing
//	go run ./bench run -check                  exits 1 when a promise is broken
//	go run ./bench gateway -peers DIR          beside the programs that bench/peers.sh DIR has installed
//
// How it measures. A machine that does other things too makes single figures worthless, so every comparison is between
// blocks that took turns within the same seconds (A B C, B C A, …), each round starts its processes anew because their
// placement on cores decides much, each figure is the mean over the middle half of the blocks, and ratios are taken within a
// round. Clients have next to no work of their own, because they take the processor away from what is measured: the one on
// stdio is a locked thread of raw system calls with garbage collection off, the one over HTTP writes requests and reads
// answers by hand, and a second one, which shares no code with it, checks it.
//
// It runs on Linux: memory, children and ends of processes are read from /proc. Goroutines: main, which measures; one for
// each started program, which waits for its end; timers that kill a program which does not answer in time; one for each
// connection during a block over HTTP or while sessions are opened; one for each cell of the fault matrix under way.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/faults"
)

// errBroken means that a promised figure was not kept.
var errBroken = errors.New("a promise is broken")

func main() {
	faults.VictimIfAsked()
	err := dispatch(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// dispatch takes the first argument as the part, and the rest as its flags.
func dispatch(args []string) error {
	switch {
	case len(args) == 2 && args[0] == serveVerb:
		return serveHTTP(args[1])
	case len(args) == 0 || strings.TrimLeft(args[0], "-") == "list":
		fmt.Print(listing())
		return nil
	}
	p, err := partNamed(args[0])
	if err != nil {
		return err
	}
	opts, err := parseFlags(p, args[1:])
	if err != nil {
		return err
	}
	return opts.run(p)
}

// options are the flags.
type options struct {
	quick, check bool
	only         []string
	outlive      string
	docs         string
	installed    string
	servers      []namedServer // of run
	launchers    []namedServer // of run
	gateways     []string      // words of names, of gateway
	extra        []gateway     // of gateway
}

func parseFlags(p part, args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("bench "+p.name, flag.ContinueOnError)
	flags.BoolVar(&opts.quick, "quick", false, "measure what is promised and a little more; write nothing")
	flags.BoolVar(&opts.check, "check", p.judged, "exit 1 when a promised figure is broken")
	flags.StringVar(&opts.outlive, "outlive", "", "measure this binary instead of building cmd/outlive")
	flags.StringVar(&opts.docs, "docs", "", "directory of BENCHMARKS.md; default docs, or none unless the part is measured whole")
	flags.StringVar(&opts.installed, "peers", "", "directory of the other programs, made by bench/peers.sh")
	flags.Func("only", "measure nothing but these: "+strings.Join(p.pieceNames(), ","), func(text string) error {
		opts.only = strings.Split(text, ",")
		for _, name := range opts.only {
			if !slices.Contains(p.pieceNames(), name) {
				return fmt.Errorf("want some of %s", strings.Join(p.pieceNames(), ","))
			}
		}
		return nil
	})
	if p.flags != nil {
		p.flags(&opts, flags)
	}
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return opts, nil
}

// whole says that everything is measured that the page tells.
func (o options) whole() bool { return !o.quick && o.only == nil && o.gateways == nil }

// run builds, measures, reports and checks.
func (o options) run(p part) error {
	if p.alone {
		if ran, _, err := faults.Isolate(); ran || err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "outlive-bench-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, say: newProgress(os.Stderr), plan: planFor(o.quick), crowd: crowdPlanFor(o.quick)}
	b.env = environment(filepath.Join(dir, "state"), "MCP_REMOTE_CONFIG_DIR="+filepath.Join(dir, "mcp-remote"), "OUTLIVE_SHARED_IDLE=5s")
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "state"), 0o700), b.build()); err != nil {
		return err
	}
	if p.prepare != nil {
		p.prepare(b)
	}
	found, err := b.measure(p)
	if err != nil {
		return err
	}
	fmt.Print(found.terminal())
	docs := o.docs
	if docs == "" && o.whole() {
		docs = filepath.Join(b.root, "docs")
	}
	if docs != "" && p.title != "" {
		if err := found.write(docs); err != nil {
			return err
		}
	}
	if o.check && slices.ContainsFunc(found.promises, func(p promise) bool { return !p.kept() }) {
		return errBroken
	}
	return nil
}

// measure takes the measurements of a part, or those that are asked for.
func (b *bench) measure(p part) (report, error) {
	if p.raw { // so that the client itself is not the noise
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	begin := time.Now()
	found := report{part: p, machine: figures.ThisMachine(), before: b.busy()}
	for _, piece := range p.pieces {
		if b.only != nil && !slices.Contains(b.only, piece.name) || b.quick && piece.long && b.only == nil {
			continue
		}
		out, err := piece.measure(b)
		if err != nil {
			return found, fmt.Errorf("%s: %w", piece.name, err)
		}
		found.add(out)
		runtime.GC()
	}
	found.took, found.after = time.Since(begin), b.busy()
	found.failures, found.missing = b.failures, b.missing
	if p.note != nil {
		found.note = p.note(b)
	}
	return found, nil
}

// build builds the programs under measurement as a user would, into the scratch directory.
func (b *bench) build() error {
	b.say("building")
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module (run from inside it): %w", err)
	}
	b.root = strings.TrimSpace(string(out))
	build := func(pkg string) (string, error) {
		target := filepath.Join(b.dir, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-trimpath", "-o", target, "./"+pkg)
		cmd.Dir, cmd.Stderr, cmd.Env = b.root, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("build %s: %w", pkg, err)
		}
		return target, nil
	}
	if b.echo, err = build("bench/echo"); err != nil {
		return err
	}
	if b.outlive == "" {
		b.outlive, err = build("cmd/outlive")
	} else {
		b.outlive, err = filepath.Abs(b.outlive)
	}
	if err == nil && b.installed != "" {
		b.installed, err = filepath.Abs(b.installed)
	}
	return err
}
