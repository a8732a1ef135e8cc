package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// sample is the configuration of an AI client on the machine that is shown.
const sample = `{
  "mcpServers": {
    "git": {
      "command": "uvx",
      "args": ["mcp-server-git"]
    }
  }
}
`

func main() {
	program := flag.String("outlive", "", "the outlive that is shown, a path")
	out := flag.String("out", "", "file that is written")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *program, *out); err != nil {
		fmt.Fprintln(os.Stderr, "screencast:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program, out string) (err error) {
	if program == "" || out == "" {
		return errors.New("want -outlive PROGRAM -out FILE")
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	for _, f := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{{".cursor/mcp.json", []byte(sample), 0o600}, {".local/bin/outlive", text, 0o755}} {
		path := filepath.Join(home, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, f.text, f.mode)); err != nil {
			return err
		}
	}
	frames, took, err := record(ctx, home, []step{
		{"outlive demo", 5 * time.Second},
		{"outlive wrap --dry-run", 7 * time.Second},
	})
	if err != nil {
		return err
	}
	for _, f := range frames { // the folder is one for this recording only
		for i := range f.lines {
			f.lines[i] = strings.ReplaceAll(f.lines[i], home, "~")
		}
	}
	return os.WriteFile(out, []byte(picture(frames, took, "outlive demo, recorded in a terminal",
		"A server is ended four times in four ways while a client calls it every 25 ms; the client sees no error. Then outlive wrap shows what it would change.")), 0o644)
}
