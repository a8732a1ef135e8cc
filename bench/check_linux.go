package main

import (
	"bufio"
	"bytes"
	_ "embed" // of the Python client
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// checkBlock is a block of calls by the second client, in the same sessions.
func (f *fleet) checkBlock(row *load, length time.Duration) error {
	counts, errs := make([]int, len(f.sessions)), make([]error, len(f.sessions))
	message := strings.Repeat("y", messageSize)
	begin := time.Now()
	var wg sync.WaitGroup
	for i, s := range f.sessions {
		s.close()
		wg.Go(func() {
			c := s.secondClient(f.url)
			defer c.http.CloseIdleConnections()
			for errs[i] == nil && time.Since(begin) < length {
				if errs[i] = c.echoAt(f.url, s.tools[0], message); errs[i] == nil {
					counts[i]++
				}
			}
		})
	}
	wg.Wait()
	took, sum := time.Since(begin), 0
	for _, n := range counts {
		sum += n
	}
	last := len(row.checked) - 1
	row.checked[last] = append(row.checked[last], float64(sum)/took.Seconds())
	return errors.Join(errs...)
}

//go:embed sdkclient.py
var sdkClient string

// sdkPython is the interpreter, below DIR, that has the Python SDK.
const sdkPython = "pypi/fastmcp/bin/python"

// check is what a client that others have written sees.
type check struct {
	Rate          float64 // calls/s of one session
	P50           float64 // ms
	Calls, Failed int     // while a server is killed
	Longest       float64 // from one good answer to the next, around the kill, ms
	noServer      bool
}

// checks lets a client that others have written, the Python SDK's, call through each gateway, first in peace and then while a
// server is killed.
func (b *bench) checks() (outcome, error) {
	python := filepath.Join(b.installed, sdkPython)
	version, err := exec.Command(python, "-c", "import importlib.metadata as m; print(m.version('mcp'))").Output()
	if err != nil {
		b.fail("the Python SDK is not there (%s): its checks are left out", python)
		return outcome{}, nil
	}
	script := filepath.Join(b.dir, "sdkclient.py")
	if err := os.WriteFile(script, []byte(sdkClient), 0o600); err != nil {
		return outcome{}, fmt.Errorf("write the client: %w", err)
	}
	t := figures.Table{
		Title: "Gateways: seen by the Python SDK's client",
		Note: fmt.Sprintf("One session of the client of mcp %s, which calls without a pause; its own work is part of every figure. Then all server processes are killed once. "+
			"Longest: from one good answer to the next, around the kill.", strings.TrimSpace(string(version))),
		Rows: [][]string{{"gateway", "calls/s", "p50, ms", "failed calls around a kill", "longest wait, ms"}},
	}
	for _, g := range b.plain() {
		b.say("the Python SDK's client: %s", g.name)
		c, err := b.checkOne(g, python, script)
		if err != nil {
			b.fail("the Python SDK's client: %s: %v", g.name, err)
			continue
		}
		failed, longest := fmt.Sprintf("%d of %d", c.Failed, c.Calls), figures.Number(c.Longest)
		if c.Longest < 0 {
			longest = "never came back"
		}
		if c.noServer {
			failed, longest = "no server runs between calls", "–"
		}
		t.Add(g.name, c.Rate, c.P50, failed, longest)
	}
	return outcome{tables: []figures.Table{t}}, nil
}

// checkOne runs the script: it says "kill" when the server is to be killed, and at its end what it has seen.
func (b *bench) checkOne(g gateway, python, script string) (check, error) {
	var row check
	r, err := b.startGateway(g, 1)
	if err != nil {
		return row, err
	}
	defer r.stop()
	cmd := exec.Command(python, script, r.url, strconv.Itoa(messageSize))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return row, fmt.Errorf("start client: %w", err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return row, fmt.Errorf("start client: %w", err)
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		if in.Text() == "kill" {
			if _, err := b.killServers(r); errors.Is(err, errNoServer) {
				row.noServer = true
			}
			continue
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			b.fail("the Python SDK's client says %q", in.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return row, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return row, nil
}
