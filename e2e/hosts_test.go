package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// machine is another machine: an OpenSSH server of its own, with a home of its own.
type machine struct {
	*workspace
	name string
	port int
	sshd *exec.Cmd
}

// machines are several of them, and the ssh configuration that leads there.
type machines struct {
	*workspace // ours
	config     strings.Builder
	key        string
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	needOutlive(t)
	m := &machines{workspace: newWorkspace(t)}
	m.key = m.path("key")
	m.keygen(t, m.key)
	return m
}

func (m *machines) keygen(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// host is a section of the ssh configuration.
func (m *machines) host(name string, port int, more ...string) {
	fmt.Fprintf(&m.config, "Host %s\n\tHostName 127.0.0.1\n\tPort %d\n\tUser root\n\tIdentityFile %s\n\tIdentitiesOnly yes\n\tUserKnownHostsFile %s\n\tStrictHostKeyChecking no\n\tLogLevel ERROR\n",
		name, port, m.key, m.path("known"))
	for _, line := range more {
		fmt.Fprintf(&m.config, "\t%s\n", line)
	}
}

// add starts a machine. program is the outlive there; "": there is none.
func (m *machines) add(t *testing.T, name, program string) *machine {
	t.Helper()
	h := &machine{workspace: newWorkspace(t), name: name, port: int(netip.MustParseAddrPort(freeAddress(t)).Port())}
	m.keygen(t, h.path("hostkey"))
	public, err := os.ReadFile(m.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if program != "" {
		if err := os.Symlink(program, h.path("bin/outlive")); err != nil {
			t.Fatal(err)
		}
	}
	env := "HOME=" + h.dir + " XDG_STATE_HOME=" + h.path("state") + " XDG_RUNTIME_DIR=" + h.path("run") + " XDG_CONFIG_HOME=" + h.path("config") +
		" PATH=" + h.path("bin") + ":/usr/bin:/bin E2E_DIR=" + h.dir
	for file, text := range map[string]string{
		"authorized": string(public),
		"sshd_config": fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nSetEnv %s\n",
			h.port, h.path("hostkey"), h.path("authorized"), env),
	} {
		if err := os.WriteFile(h.path(file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.listen(t)
	t.Cleanup(h.silence)
	m.host(name, h.port)
	return h
}

// listen starts the OpenSSH server, and returns when it takes connections.
func (h *machine) listen(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // where it gives up its rights; it says so itself if that is missing
	}
	foreign(t, "OpenSSH")
	h.sshd = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", h.path("sshd_config"))
	h.sshd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(h.path("sshd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h.sshd.Stderr = log
	if err := h.sshd.Start(); err != nil {
		t.Fatalf("%v: e2e/install.sh installs it", err)
	}
	if !eventually(func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(h.port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}) {
		text, _ := os.ReadFile(h.path("sshd.log"))
		t.Fatalf("sshd does not listen: %s", text)
	}
}

// silence ends the OpenSSH server; sessions have processes of their own, which are found by their parent.
func (h *machine) silence() {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(h.sshd.Process.Pid)).Output()
	_ = h.sshd.Process.Kill()
	_ = h.sshd.Wait()
	for word := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// quiet is a port that takes connections and says nothing.
func (m *machines) quiet(t *testing.T, name string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	m.host(name, l.Addr().(*net.TCPAddr).Port)
}

// command is outlive here, with that ssh.
func (m *machines) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile(m.path("ssh_config"), []byte(m.config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tools.outlive, args...)
	cmd.Env, cmd.Dir = append(m.env(), "OUTLIVE_SSH=ssh -F "+m.path("ssh_config")), m.dir
	return cmd
}

// run runs it and wants an exit status.
func (m *machines) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := m.command(t, args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("outlive %s: %v, want exit status %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

func want(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("no match for %s in:\n%s", p, text)
		}
	}
}

// serve starts a real server behind outlive on a machine.
func (h *machine) serve(t *testing.T, name string) *raw {
	t.Helper()
	everything := filepath.Join(tools.root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	return connectRaw(t, h.workspace, []string{tools.outlive, "run", "--name", name, "--restart-delay", "0", "--", tools.node, everything, "stdio"})
}

// following collects the lines of a command that goes on.
type following struct {
	mu    sync.Mutex
	lines []string
}

func (f *following) read(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		f.mu.Lock()
		f.lines = append(f.lines, lines.Text())
		f.mu.Unlock()
	}
}

func (f *following) await(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	if !eventually(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, l := range f.lines {
			if re.MatchString(l) {
				return true
			}
		}
		return false
	}) {
		f.mu.Lock()
		defer f.mu.Unlock()
		t.Fatalf("%s is not said:\n%s", pattern, strings.Join(f.lines, "\n"))
	}
}

// forget drops what was said so far.
func (f *following) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = nil
}

// follow starts a command that goes on until it is interrupted, or ends with the test.
func (m *machines) follow(t *testing.T, args ...string) *following {
	t.Helper()
	f := &following{}
	go f.read(untilInterrupted(t, m.command(t, args...)))
	return f
}

// Some hosts have servers, one has another version, and some do not answer: what each says, and that nobody waits for another.
func TestHostsAreSeenOverSSH(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	alpha, beta := m.add(t, "alpha", tools.outlive), m.add(t, "beta", tools.outlive)
	m.add(t, "bare", "")
	m.quiet(t, "quiet")
	m.host("refused", 1)
	m.host("inner", beta.port, "ProxyJump alpha")
	m.host("kept", alpha.port, "ControlMaster auto", "ControlPath "+m.path("%n.ctl"), "ControlPersist 60", "RemoteCommand htop", "LocalForward 1 127.0.0.1:1")
	one := alpha.serve(t, "one")
	beta.serve(t, "two")

	t.Run("a host that does not answer holds nobody up", func(t *testing.T) {
		cmd := m.command(t, "status", "--hosts", "alpha,quiet,refused,bare,beta", "--hosts-timeout", "8s")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		at := map[string]time.Duration{}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			name, _, _ := strings.Cut(lines.Text(), " ")
			if _, told := at[name]; !told {
				at[name] = time.Since(began)
			}
			all.WriteString(lines.Text() + "\n")
		}
		_ = cmd.Wait()
		want(t, all.String(), `^alpha/one +ready `, `^beta/two +ready `, `^quiet +no answer$`, `^refused +no connection$`, `^bare +no outlive$`,
			`^quiet: no answer: nothing was heard of it within 8s`, `^refused: no connection: ssh: connect to host 127\.0\.0\.1 port 1: Connection refused`,
			`^bare: no outlive: .* install it`)
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("exit status %d", code)
		}
		for _, name := range []string{"alpha/one", "beta/two", "refused", "bare"} {
			inTime(t, name+" was shown", at[name], 6*time.Second)
			if at[name] >= at["quiet"] {
				t.Errorf("%s was shown after the silent host: %v", name, at)
			}
		}
		inTime(t, "the silent host was shown", at["quiet"], 12*time.Second)
		if at["quiet"] < 8*time.Second {
			t.Errorf("the row of the silent host came after %v", at["quiet"])
		}
	})
	t.Run("a jump host", func(t *testing.T) {
		want(t, m.run(t, 0, "status", "--hosts", "inner"), `^inner/two +ready `)
	})
	t.Run("the user's multiplexing, and what a user has configured for sessions", func(t *testing.T) {
		began := time.Now()
		want(t, m.run(t, 0, "status", "--hosts", "kept"), `^kept/one +ready `)
		first := time.Since(began)
		if out, err := exec.Command("ssh", "-F", m.path("ssh_config"), "-O", "check", "kept").CombinedOutput(); err != nil {
			t.Fatalf("no connection is kept: %v %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ssh", "-F", m.path("ssh_config"), "-O", "exit", "kept").Run() })
		began = time.Now()
		want(t, m.run(t, 0, "status", "--hosts", "kept"), `^kept/one +ready `)
		t.Logf("first %v, then %v", first, time.Since(began))
		inTime(t, "the first answer by a connection that stays came", first, 8*time.Second)
	})
	t.Run("JSON", func(t *testing.T) {
		var list []struct {
			Host, Version string
			Error         *struct{ Kind string }
			Answer        []struct{ Name string }
		}
		cmd := m.command(t, "status", "--hosts", "beta,refused", "--json")
		out, _ := cmd.Output()
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatal(err)
		}
		if len(list) != 2 || list[0].Host != "beta" || list[0].Version == "" || list[0].Answer[0].Name != "two" || list[1].Error == nil || list[1].Error.Kind != "no connection" {
			t.Errorf("%s", out)
		}
	})
	t.Run("restart and logs", func(t *testing.T) {
		before := one.keptPID(t)
		want(t, m.run(t, 0, "restart", "one", "--hosts", "alpha,beta", "--reason", `a 'quoted' "reason" $HOME; exit 1`), `^alpha/one: ready after [0-9]+ ms`)
		if after := one.keptPID(t); after == before {
			t.Error("the server was not restarted")
		}
		one.ask(t, "tools/list", nil)
		audit, _ := filepath.Glob(alpha.path("state/outlive/audit/*.jsonl"))
		var text []byte
		for _, path := range audit {
			one, _ := os.ReadFile(path)
			text = append(text, one...)
		}
		want(t, string(text), regexp.QuoteMeta(`a 'quoted' \"reason\" $HOME; exit 1`))
		want(t, m.run(t, 0, "logs", "one", "--hosts", "alpha,beta"), `.`)
		want(t, m.run(t, 2, "restart", "one", "--hosts", "alpha,kept"), `2 servers are called "one"; say which one: alpha/one@\d+, kept/one@\d+`)
	})
}

// keptPID is the server's, as outlive on its machine says.
func (c *raw) keptPID(t *testing.T) int {
	t.Helper()
	var out []byte
	var list []struct {
		PID int `json:"server_pid"`
	}
	if !eventually(func() bool {
		cmd := exec.Command(tools.outlive, "status", "--json")
		cmd.Env = c.env()
		out, _ = cmd.Output()
		return json.Unmarshal(out, &list) == nil && len(list) > 0 && list[0].PID > 0 // it may be late to answer
	}) {
		t.Fatalf("status: %s", out)
	}
	return list[0].PID
}

// A killed server is told from its machine; a connection that is lost is told, and taken up again.
func TestWatchOverSSH(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	alpha, beta := m.add(t, "alpha", tools.outlive), m.add(t, "beta", tools.outlive)
	m.host("refused", 1)
	one := alpha.serve(t, "one")
	text := m.follow(t, "watch", "--hosts", "alpha,beta,refused")
	asJSON := m.follow(t, "watch", "--hosts", "alpha,beta", "--json")
	text.await(t, `alpha: connected`)
	text.await(t, `beta: connected`)
	text.await(t, `refused: no connection: ssh: connect to host`)
	asJSON.await(t, `"host":"alpha".*"event_type":"host_connected"`)
	if err := syscall.Kill(one.keptPID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	text.await(t, `alpha/one@\d+: Server crashed`)
	text.await(t, `alpha/one@\d+: Restart completed`)
	asJSON.await(t, `^\{"host":"alpha","instance":"one@\d+","timestamp":.*"event_type":"server_crashed"`)

	beta.silence()
	text.await(t, `beta: no connection: `)
	text.forget()
	beta.listen(t)
	text.await(t, `beta: connected`)
	beta.serve(t, "two")
	asJSON.await(t, `^\{"host":"beta","timestamp":.*"event_type":"host_lost"`)
	text.await(t, `beta/two@\d+: Server ready`)
}

// A page shows several machines: their servers, their past, and one that does not answer; its buttons reach them.
func TestDashboardOverSSH(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	alpha := m.add(t, "alpha", tools.outlive)
	m.host("refused", 1)
	one := alpha.serve(t, "one")
	before := one.keptPID(t)
	out := untilInterrupted(t, m.command(t, "dashboard", "--hosts", "alpha,refused", "--listen", "127.0.0.1:0", "--control"))
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	link = strings.TrimSpace(link)
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: patience}
	page := func(url string) string {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return b.String()
	}
	base, _, _ := strings.Cut(link, "/?")
	page(link)
	if !eventually(func() bool {
		text := page(base + "/")
		return strings.Contains(text, ">alpha/one<") && strings.Contains(text, "no connection") && strings.Contains(text, "Connection refused")
	}) {
		t.Fatal(page(base + "/"))
	}
	key := regexp.MustCompile(`/server/(alpha/one@\d+)"`).FindStringSubmatch(page(base + "/"))[1]
	server := page(base + "/server/" + key)
	want(t, server, `outlive logs --hosts alpha one@\d+`, `Restart alpha/one`)
	want(t, page(base+"/events"), "Server ready") // of the time before the dashboard
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(server)[1]
	req, _ := http.NewRequest(http.MethodPost, base+"/do", strings.NewReader("csrf="+csrf+"&server="+key+"&back=/"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", base)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	want(t, string(answer), `alpha: one: ready after|alpha: one@\d+: ready after`)
	if after := one.keptPID(t); after == before {
		t.Error("the server was not restarted")
	}
}

// Another version is told, and what it says is shown all the same.
func TestHostWithAnotherVersion(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	other := m.path("outlive-other")
	versionOf := func(path string) string {
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "outlive ")
	}
	here := versionOf(tools.outlive)
	for _, stamp := range []string{"true", "false"} { // one of them is how the tested one was built
		build := exec.Command("go", "build", "-buildvcs="+stamp, "-o", other, "./cmd/outlive")
		build.Dir = filepath.Dir(tools.root)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		if versionOf(other) != here {
			break
		}
	}
	if versionOf(other) == here {
		t.Fatalf("both are %s", here)
	}
	alpha := m.add(t, "alpha", other)
	alpha.serve(t, "one")
	told := "outlive is " + regexp.QuoteMeta(versionOf(other)) + " there, and " + regexp.QuoteMeta(here) + " here"
	want(t, m.run(t, 0, "status", "--hosts", "alpha"), `^alpha/one +ready `, `^alpha: `+told+`$`)
	m.follow(t, "watch", "--hosts", "alpha").await(t, `alpha: connected; `+told)
}
