package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// sessions is how many each side has.
const sessions = 200

func main() {
	rounds := flag.Int("rounds", 20, "blocks of each side")
	calls := flag.Int("calls", 1000, "calls in a block")
	tcp := flag.Bool("tcp", false, "beside three replicas of one machine, instead of beside one gateway: three whose core is reached as on another machine")
	flag.Parse()
	sides := []sideKind{{name: "one gateway", gateways: 1}, {name: "three replicas", gateways: 3}}
	if *tcp {
		sides = []sideKind{{name: "three replicas", gateways: 3}, {name: "the same with a core elsewhere", gateways: 3, tcp: true}}
	}
	if err := measure(sides, *rounds, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(1)
	}
}

// sideKind is what a side has.
type sideKind struct {
	name     string
	gateways int  // one, or so many replicas
	tcp      bool // replicas reach their core by TCP, with a secret
}

// measure prints the table.
func measure(sides []sideKind, rounds, calls int) (err error) {
	dir, err := os.MkdirTemp("", "replicas")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, program := range []string{"./cmd/outlive", "./bench/echo"} {
		if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), program).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, out)
		}
	}
	fmt.Printf("%s, %d processors, %d sessions a side, %d blocks of %d calls a side\n\n", runtime.Version(), runtime.NumCPU(), sessions, rounds, calls)
	fmt.Printf("| calls at a time | | %s | %s | ratio |\n", sides[0].name, sides[1].name)
	fmt.Println("|--:|---|--:|--:|--:|")
	for _, together := range []int{1, 16} {
		if err := compare(sides, dir, rounds, calls, together); err != nil {
			return err
		}
	}
	return nil
}

// compare prints the lines of one load.
func compare(sides []sideKind, dir string, rounds, calls, together int) (err error) {
	one, err := start(filepath.Join(dir, fmt.Sprint("a", together)), dir, sides[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.stop()) }()
	other, err := start(filepath.Join(dir, fmt.Sprint("b", together)), dir, sides[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.stop()) }()
	for round := range rounds {
		order := []*side{one, other}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := s.block(calls, together, round > 0); err != nil {
				return err
			}
		}
	}
	for _, percent := range []int{50, 99} {
		a, b := one.percentile(percent), other.percentile(percent)
		fmt.Printf("| %d | p%d | %.2f ms | %.2f ms | %.2f |\n", together, percent, a, b, b/a)
	}
	return nil
}

// side is one gateway, or some replicas.
type side struct {
	urls     []string
	commands []*exec.Cmd
	sessions []string
	client   http.Client
	turn     int

	mu   sync.Mutex
	took []time.Duration
}

// start starts a side in a state directory of its own, and opens its sessions.
func start(state, programs string, kind sideKind) (*side, error) {
	if err := os.MkdirAll(filepath.Join(state, "run"), 0o700); err != nil {
		return nil, err
	}
	config, secret := filepath.Join(state, "outlive.yaml"), filepath.Join(state, "secret")
	text := fmt.Sprintf("names: never\nlimits: {sessions: 1000}\nservers: {e: {command: %q, shared: true}}\n", filepath.Join(programs, "echo"))
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.WriteFile(secret, []byte(rand.Text()+rand.Text()), 0o600)); err != nil {
		return nil, err
	}
	s := &side{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions}, Timeout: time.Minute}}
	run := func(args ...string) error {
		cmd := exec.Command(filepath.Join(programs, "outlive"), append([]string{"gateway", "-c", config}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_RUNTIME_DIR="+filepath.Join(state, "run"))
		err := cmd.Start()
		if err == nil {
			s.commands = append(s.commands, cmd)
		}
		return err
	}
	replica := []string{"--replica", "--core-idle", "1s"}
	if kind.tcp {
		core, err := freeAddress()
		if err == nil {
			err = run("--core", "--core-listen", core, "--core-secret-file", secret)
		}
		if err != nil {
			return nil, err
		}
		replica = []string{"--replica", "--core-at", core, "--core-secret-file", secret}
	}
	for range kind.gateways {
		address, err := freeAddress()
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		args := []string{"--listen", address}
		if kind.gateways > 1 {
			args = append(args, replica...)
		}
		if err := run(args...); err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.urls = append(s.urls, "http://"+address+"/mcp")
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// open opens the sessions, once somebody listens.
func (s *side) open() error {
	for _, url := range s.urls {
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			_, _, err := s.post(url, "", `{"jsonrpc":"2.0","id":0,"method":"ping"}`)
			if err == nil {
				break
			}
			if time.Since(begun) > 30*time.Second {
				return err
			}
		}
	}
	for n := range sessions {
		url := s.urls[n%len(s.urls)]
		id, body, err := s.post(url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
		if err == nil && id == "" {
			err = fmt.Errorf("no session: %s", body)
		}
		if err == nil {
			_, _, err = s.post(url, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		if err != nil {
			return err
		}
		s.sessions = append(s.sessions, id)
	}
	return nil
}

func (s *side) post(url, session, line string) (id string, body []byte, err error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(line)))
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.Header.Get("Mcp-Session-Id"), body, err
}

// block makes calls, so many at a time, each in the next session and at the next address. counts: the figures count.
func (s *side) block(calls, together int, counts bool) error {
	work, failed := make(chan int), make(chan error, together)
	var done sync.WaitGroup
	for range together {
		done.Go(func() {
			for n := range work {
				if err := s.call(n, counts); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for range calls {
		s.turn++
		work <- s.turn
	}
	close(work)
	done.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (s *side) call(n int, counts bool) error {
	begun := time.Now()
	_, body, err := s.post(s.urls[n%len(s.urls)], s.sessions[n%sessions],
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"call %d"}}}`, n, n))
	took := time.Since(begun)
	if err == nil && !bytes.Contains(body, fmt.Appendf(nil, `"text":"call %d"`, n)) {
		err = fmt.Errorf("call %d is answered %s", n, body)
	}
	if err != nil || !counts {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
	return nil
}

// percentile is how long calls took, in milliseconds.
func (s *side) percentile(percent int) float64 {
	slices.Sort(s.took)
	return s.took[len(s.took)*percent/100].Seconds() * 1000
}

// stop ends the gateways, and the core that was started; one of replicas ends by itself.
func (s *side) stop() (err error) {
	s.client.CloseIdleConnections()
	for _, cmd := range s.commands {
		err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
	}
	for _, cmd := range s.commands {
		var exit *exec.ExitError
		if e := cmd.Wait(); e != nil && !errors.As(e, &exit) {
			err = errors.Join(err, e)
		}
	}
	return err
}
