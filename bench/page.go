package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What lies between the markers is written by the benchmark; the rest of the
// page is the author's.
const (
	pageBegin = "<!-- bench:begin -->"
	pageEnd   = "<!-- bench:end -->"
)

const newPage = `# Benchmarks

What it costs to have outlive between a client and its server, side by side with no relay at all and with the
fastest plain byte relay that can be written in Go. Everything between the markers is written by ` + "`go run ./bench`" + `.

` + pageBegin + "\n" + pageEnd + "\n"

// errMarkers means that the page has lost its markers.
var errMarkers = errors.New("the page has no " + pageBegin + " … " + pageEnd)

// writeDocs writes the plot and the measured part of the page.
func writeDocs(dir string, r *results) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.svg"), []byte(plot(r)), 0o644); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	path := filepath.Join(dir, "BENCHMARKS.md")
	page, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		page, err = []byte(newPage), nil
	}
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	text, err := replaceSection(string(page), section(r))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// replaceSection puts body between the markers of page.
func replaceSection(page, body string) (string, error) {
	before, rest, ok := strings.Cut(page, pageBegin)
	if !ok {
		return "", errMarkers
	}
	_, after, ok := strings.Cut(rest, pageEnd)
	if !ok {
		return "", errMarkers
	}
	return before + pageBegin + "\n" + body + pageEnd + after, nil
}

// section is the measured part of the page.
func section(r *results) string {
	var out strings.Builder
	out.WriteString("![Added latency and restart gap](benchmarks.svg)\n\n")
	fmt.Fprintf(&out, "Measured on %s, in %s.\n\n", r.Machine, r.Took.Round(time.Second))
	out.WriteString("`direct` is no relay; `floor` is `bench/floor`, one thread that copies bytes and knows nothing of messages; " +
		"`outlive` is `outlive run` with everything on. All three take turns in one run, against the same server (`bench/echo`), " +
		"with new processes in each round; figures are means over the middle half of the blocks. " +
		"On another machine the figures differ; the ratios are what should stay.\n\n")
	for _, t := range tables(r) {
		out.WriteString(t.markdown() + "\n")
	}
	out.WriteString("### How to reproduce\n\n```sh\n" +
		"go run ./bench              # everything; rewrites this section\n" +
		"go run ./bench -quick       # what is promised, in half a minute\n" +
		"go run ./bench -check       # exits 1 when a promise is broken\n" +
		"go run ./bench -restarts 10000\n" +
		"go run ./bench -server 'Python SDK=python3 server.py' -server 'TypeScript SDK=node server.js'\n" +
		"go run ./bench -launcher 'npx server-everything=npx -y @modelcontextprotocol/server-everything'\n" +
		"go run ./bench -only reloads -reloads 500\n" +
		"```\n\nLeave the machine alone meanwhile: with a busy core the spread grows and p99 means little.\n")
	return out.String()
}
