package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// processDriver drives a client that runs in its own process and takes steps as JSON lines (clients/driver.mjs).
type processDriver struct {
	s     *session
	stdin io.WriteCloser
	ended chan struct{}

	mu   sync.Mutex
	done map[int]func(reply)
}

func processClient(name, mode string, command ...string) client {
	kind := mode
	if mode == "2026-07-28" {
		kind = "modern"
	}
	return client{name: name, modes: kind, start: func(s *session, argv []string) (driver, reply) {
		return startProcess(s.t, s, append(append(append([]string{}, command...), mode), argv...))
	}}
}

// clients are all clients of the matrix by name.
func clients() map[string]client {
	js := func(name, file, mode string) client {
		return processClient(name, mode, tools.node, filepath.Join(tools.root, "clients", file))
	}
	py := func(name, mode string) client {
		return processClient(name, mode, tools.python, filepath.Join(tools.root, "clients", "py_client.py"))
	}
	all := []client{
		goClient("go", "auto"), goClient("go-legacy", "legacy"),
		js("ts1", "ts1.mjs", "legacy"),
		js("ts2-legacy", "ts2.mjs", "legacy"), js("ts2-auto", "ts2.mjs", "auto"), js("ts2-modern", "ts2.mjs", "modern"),
		py("py-auto", "auto"), py("py-legacy", "legacy"), py("py-modern", "2026-07-28"),
	}
	byName := map[string]client{}
	for _, c := range all {
		byName[c.name] = c
	}
	return byName
}

func startProcess(t *testing.T, s *session, argv []string) (driver, reply) {
	t.Helper()
	foreignIn(t, argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.env()
	cmd.Dir = s.dir
	stderr, err := os.OpenFile(s.path("stderr.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	d := &processDriver{s: s, ended: make(chan struct{}), done: map[int]func(reply){}}
	if d.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hello := make(chan reply, 1)
	d.done[0] = func(r reply) { hello <- r }
	if err := cmd.Start(); err != nil {
		t.Fatalf("start client: %v", err)
	}
	go func() {
		d.read(stdout)
		_ = cmd.Wait()
		close(d.ended)
	}()
	select {
	case r := <-hello:
		return d, r
	case <-d.ended:
		return d, reply{Error: &failure{Message: "the client ended before it was connected"}}
	case <-time.After(s.handshakeLimit()):
		return d, reply{Error: &failure{Message: fmt.Sprintf("the client is not connected after %v", s.handshakeLimit())}}
	}
}

func (d *processDriver) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		_ = json.Unmarshal(lines.Bytes(), &e)
		if e.Event != "" {
			d.s.record(e)
			continue
		}
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			d.s.record(event{Event: "error", Message: "driver printed " + lines.Text()})
			continue
		}
		d.mu.Lock()
		done := d.done[r.N]
		delete(d.done, r.N)
		d.mu.Unlock()
		if done == nil {
			d.s.record(event{Event: "error", Message: "answered twice: " + lines.Text()})
			continue
		}
		done(r)
	}
}

func (d *processDriver) send(s step, done func(reply)) {
	d.mu.Lock()
	d.done[s["n"].(int)] = done
	d.mu.Unlock()
	line, err := json.Marshal(s)
	if err == nil {
		_, err = d.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		done(reply{Error: &failure{Message: "driver: " + err.Error()}})
	}
}

func (d *processDriver) exited() <-chan struct{} { return d.ended }
