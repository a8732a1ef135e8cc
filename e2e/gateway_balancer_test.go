package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// host is where a gateway takes clients, without the path.
func (g *gateway) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(g.url, "http://"), "/mcp")
}

// inFront starts a load balancer in this process, which gives each request to the next gateway and adds headers to it. It returns where
// clients come.
func inFront(t *testing.T, all []*gateway, headers http.Header) (url string) {
	t.Helper()
	dialer := net.Dialer{Timeout: dialPatience, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}
	turns := &inTurn{Transport: http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext}, rests: map[string]time.Time{}}
	for _, g := range all {
		turns.targets = append(turns.targets, g.host())
	}
	balancer := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { maps.Copy(r.Out.Header, headers) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Transport:     turns,
		FlushInterval: -1,
	})
	t.Cleanup(func() {
		balancer.CloseClientConnections()
		balancer.Close()
		turns.CloseIdleConnections()
	})
	return balancer.URL + "/mcp"
}

// dialPatience is how long the load balancer waits for a connection to a machine that may be cut off.
const dialPatience = 2 * time.Second

// restOfFailed is how long a gateway at which a request has failed gets no other one while there is a choice. nginx waits ten seconds, unless
// it is told otherwise.
const restOfFailed = time.Second

// inTurn gives each request to the next gateway, and to the one after that if nobody listens there. A request that was sent is not sent
// again. One at which a request has failed has a rest: the system takes up to a tenth of a second to end a process that was killed, and
// until then it takes connections for it that it then breaks.
type inTurn struct {
	http.Transport
	targets []string
	next    atomic.Uint64

	mu    sync.Mutex
	rests map[string]time.Time // since when
}

// RoundTrip implements http.RoundTripper.
func (b *inTurn) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for _, target := range b.inOrder() {
		one := r.Clone(r.Context())
		one.URL.Scheme, one.URL.Host, one.Host = "http", target, target
		if r.Body != nil {
			one.Body = io.NopCloser(bytes.NewReader(body))
		}
		if resp, err = b.Transport.RoundTrip(one); err == nil || r.Context().Err() != nil {
			return resp, err
		}
		b.fails(target)
		if refused := new(net.OpError); !errors.As(err, &refused) || refused.Op != "dial" {
			return resp, err
		}
	}
	return nil, err
}

// inOrder are the gateways as a request tries them.
func (b *inTurn) inOrder() (order []string) {
	turn := int(b.next.Add(1) % uint64(len(b.targets)))
	order = slices.Concat(b.targets[turn:], b.targets[:turn])
	b.mu.Lock()
	defer b.mu.Unlock()
	rests := func(target string) int {
		if time.Since(b.rests[target]) < restOfFailed {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(x, y string) int { return rests(x) - rests(y) })
	return order
}

func (b *inTurn) fails(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rests[target] = time.Now()
}

// balancer is a load balancer as docs/GATEWAY.md has it.
type balancer struct {
	name   string
	how    string // "round robin" or "hash"
	config string // LISTEN is where clients come, DIR a directory of its own, SERVERS the gateways, HOW the lines of how
	lines  string // those of how
	server string // one of SERVERS: NAME and ADDRESS
	argv   func(dir, config string) []string
}

const nginxConfig = `daemon off;
user root;
pid DIR/pid;
error_log stderr warn;
worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	upstream gateways {
HOW
SERVERS
		keepalive 32;
	}
	server {
		listen LISTEN;
		client_max_body_size 16m;
		location / {
			proxy_pass http://gateways;
			proxy_http_version 1.1;
			proxy_set_header Host $host;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_read_timeout 1h;
		}
	}
}
`

const haproxyConfig = `global
	maxconn 8192
defaults
	mode http
	timeout connect 2s
	timeout client 1h
	timeout server 1h
	retries 2
	retry-on conn-failure 503
	option redispatch 1
frontend clients
	bind LISTEN
	default_backend gateways
backend gateways
HOW
	option httpchk
	http-check send meth GET uri /healthz ver HTTP/1.1 hdr Host localhost
SERVERS
`

// balancers are all of them.
func balancers() []balancer {
	nginx := func(dir, config string) []string {
		return []string{"nginx", "-e", "stderr", "-p", dir, "-c", config}
	}
	haproxy := func(_, config string) []string { return []string{"haproxy", "-db", "-f", config} }
	const ofNginx, ofHAProxy = "\t\tserver ADDRESS max_fails=1 fail_timeout=1s;", "\tserver NAME ADDRESS check inter 1s fall 1"
	return []balancer{
		{"haproxy", "round robin", haproxyConfig, "\tbalance roundrobin", ofHAProxy, haproxy},
		{"haproxy", "hash", haproxyConfig, "\tbalance hdr(Mcp-Session-Id)\n\thash-type consistent", ofHAProxy, haproxy},
		{"nginx", "round robin", nginxConfig, "", ofNginx, nginx},
		{"nginx", "hash", nginxConfig, "\t\thash $http_mcp_session_id consistent;", ofNginx, nginx},
	}
}

// start starts it before some gateways, and returns where clients come.
func (b balancer) start(t *testing.T, all []*gateway) (url string) {
	t.Helper()
	var lines []string
	for n, g := range all {
		lines = append(lines, strings.NewReplacer("NAME", fmt.Sprint("g", n), "ADDRESS", g.host()).Replace(b.server))
	}
	dir, address := t.TempDir(), freeAddress(t)
	config := filepath.Join(dir, "config")
	text := strings.NewReplacer("LISTEN", address, "DIR", dir, "SERVERS", strings.Join(lines, "\n"), "HOW", b.lines).Replace(b.config)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := b.argv(dir, config)
	program := filepath.Join(tools.root, ".work/bin", argv[0])
	if !exists(program) {
		program = "/usr/sbin/" + argv[0]
	}
	cmd := exec.Command(program, argv[1:]...)
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v; e2e/install.sh installs it", b.name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if out, _ := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("%s has said:\n%s", b.name, out)
		}
	})
	if !eventually(func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}) {
		out, _ := os.ReadFile(said.Name())
		t.Fatalf("%s does not listen: %s", b.name, out)
	}
	return "http://" + address + "/mcp"
}

// What docs/GATEWAY.md says of load balancers is what is tried.
func TestBalancersAreThoseOfTheDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tools.root, "..", "docs", "GATEWAY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range balancers() {
		for _, line := range strings.Split(b.lines, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.Contains(string(text), line) {
				t.Errorf("docs/GATEWAY.md does not have, of %s: %s", b.name, line)
			}
		}
	}
	for _, line := range []string{"proxy_buffering off;", "proxy_set_header Host $host;", "proxy_read_timeout 1h;", "timeout server 1h", "http-check send meth GET uri /healthz ver HTTP/1.1 hdr Host localhost"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/GATEWAY.md does not have %s", line)
		}
	}
}
