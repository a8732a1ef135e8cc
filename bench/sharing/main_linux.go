package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/program"
)

// bench is what everything is measured with.
type bench struct {
	outlive, echo string
	installed     string // what install.sh has installed
	versions      string
	dir           string // scratch
	tag           string // in the environment of all that is started
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sharing:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == serveVerb {
		return serveHTTP()
	}
	outlive := flag.String("outlive", "", "measure this binary instead of building cmd/outlive")
	installed := flag.String("installed", "", "the directory that install.sh has installed into")
	page := flag.String("page", "docs/BENCHMARKS.md", "the page whose sections are rewritten; none: print only")
	only := flag.String("only", "", "sharing or transports: this section only; memory, shared, from-url or to-http: print this table only")
	flag.Parse()
	dir, err := os.MkdirTemp("", "sharing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, tag: "BENCH_SHARING=" + rand.Text()}
	if b.outlive, err = program.Given(*outlive, dir, "cmd/outlive"); err != nil {
		return err
	}
	if b.echo, err = program.Build(dir, "bench/echo"); err != nil {
		return err
	}
	if b.installed, err = filepath.Abs(*installed); err != nil {
		return err
	}
	text, _ := os.ReadFile(filepath.Join(b.installed, "versions")) // nothing is installed: only outlive is measured
	b.versions = string(text)
	return b.report(*only, *page)
}

// section is a part of the page, with tables that can be measured alone.
type section struct {
	name, title string
	tables      []table
}

type table struct {
	name    string
	measure func() (figures.Table, error)
}

// report measures, and writes the sections that were measured whole.
func (b *bench) report(only, page string) error {
	for _, s := range []section{
		{"sharing", "Shared servers", []table{{"memory", b.memoryTable}, {"shared", b.sharedTable}}},
		{"transports", "Transports", []table{{"from-url", b.fromURLTable}, {"to-http", b.toHTTPTable}}},
	} {
		begin := time.Now()
		var body strings.Builder
		whole := true
		for _, t := range s.tables {
			if only != "" && only != s.name && only != t.name {
				whole = false
				continue
			}
			made, err := t.measure()
			if err != nil {
				return err
			}
			fmt.Print(made.Plain())
			body.WriteString(made.Markdown() + "\n")
		}
		if !whole || page == "none" {
			continue
		}
		head := fmt.Sprintf("## %s\n\nMeasured on %s, in %s, by `go run ./bench/sharing -only %s -installed DIR`; `bench/sharing/install.sh DIR` installs the servers and the other programs.\n\n",
			s.title, figures.ThisMachine(), time.Since(begin).Round(time.Second), s.name)
		if err := figures.WriteSection(page, s.name, head+body.String()); err != nil {
			return err
		}
	}
	return nil
}

// env is the environment of everything that is started: state of its own, and the tag.
func (b *bench) env() []string {
	run := filepath.Join(b.dir, "run")
	_ = os.MkdirAll(run, 0o700) // outlive says it if that has failed
	return append(os.Environ(), b.tag, "XDG_STATE_HOME="+filepath.Join(b.dir, "state"), "XDG_RUNTIME_DIR="+run, "MCP_REMOTE_CONFIG_DIR="+filepath.Join(b.dir, "mcp-remote"), "OUTLIVE_SHARED_IDLE=5s")
}
