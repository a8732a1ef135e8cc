//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/line/remote"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// guarded is an MCP server that requires a token, and its authorization server.
func guarded(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	say := func(w http.ResponseWriter, body map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /.well-known/oauth-protected-resource", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"resource": srv.URL + "/mcp", "authorization_servers": []string{srv.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"issuer": srv.URL, "authorization_endpoint": srv.URL + "/authorize", "token_endpoint": srv.URL + "/token",
			"registration_endpoint": srv.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "again"})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer granted" {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+srv.URL+`/.well-known/oauth-protected-resource"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		serveGuarded(w, r)
	})
	return srv
}

// serveGuarded answers as the smallest MCP server there is.
func serveGuarded(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"guarded","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"secret","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"the secret"}]}`,
		"ping":       `{}`,
	}[m.Method]
	if m.Params.Name == "team" {
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Header.Get("X-Team"))
	}
	w.Header().Set("Content-Type", "application/json")
	if result == "" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// ownCommand is `outlive ARG…` by this test binary, with its own directories.
func ownCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "bin", "outlive"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+dir)
	}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// A remote server that requires authorization reports the command for it; after that command the running gateway uses
// the server.
func TestGatewayLogin(t *testing.T) {
	srv, dir := guarded(t), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "outlive")); err != nil {
		t.Fatal(err)
	}
	text := "servers:\n  far: {url: \"" + srv.URL + "/mcp\"}\n  near: {command: x, disabled: true}\n"
	if err := os.WriteFile(filepath.Join(dir, "outlive.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := ownCommand(t, dir, "gateway", "-c", "outlive.yaml")
	in, err := gateway.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr transcript
	gateway.Stderr = &stderr
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	client := mcptest.NewClient(mcptest.Join(out, in))
	client.GoID("0", "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
	_ = client.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	client.GoID("1", "tools/call", map[string]any{"name": "far_secret"})
	wait := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), dialoguePatience)
		defer cancel()
		if _, err := client.WaitFor(ctx, func(line string) bool { return strings.Contains(line, what) }); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", what, err, strings.Join(client.Lines(), "\n"), stderr.text())
		}
	}
	wait("run outlive gateway login far -c outlive.yaml")
	const need = "far: the server wants a login: run outlive gateway login far -c outlive.yaml"
	if got := statusOf(t, dir); !strings.Contains(got, "gateway/far: cannot be used: "+need) {
		t.Errorf("status does not say what to do:\n%s", got)
	}
	if got := stderr.text(); strings.Contains(got, "crashed") || strings.Contains(got, "exit") || strings.Contains(got, "Restart") ||
		strings.Count(got, need) > 2 {
		t.Errorf("the log does not say what is wrong:\n%s", got)
	}
	client.GoID("2", "tools/list", nil)
	wait(`"id":2`)

	login(t, dir)
	wait("notifications/tools/list_changed")
	client.GoID("3", "tools/list", nil)
	wait("far_secret")
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// statusOf is what `outlive status` shows.
func statusOf(t *testing.T, dir string) string {
	t.Helper()
	out, err := ownCommand(t, dir, "status").CombinedOutput()
	if err != nil {
		t.Fatalf("status: %v\n%s", err, out)
	}
	return string(out)
}

// login is `outlive gateway login far`, with this test as the browser.
func login(t *testing.T, dir string) {
	t.Helper()
	cmd := ownCommand(t, dir, "gateway", "login", "far", "-c", "outlive.yaml", "--no-browser")
	loginBy(t, dir, cmd, func(page string) { browse(t, page) })
}

// loginBy is a command that logs in, with visit as the user who opens the page. What it prints is returned.
func loginBy(t *testing.T, dir string, cmd *exec.Cmd, visit func(page string)) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, "http") {
			visit(page)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("login: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "outlive", "oauth", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("grants: %v, %v", files, err)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", files[0], st.Mode(), err)
	}
	return said.String()
}

// Over SSH, where no browser can be opened, `outlive login URL` takes the address at which a browser on another machine ends, and the next
// run uses what was granted.
func TestLoginFromAnotherMachine(t *testing.T) {
	srv, dir := guarded(t), ownOutlive(t, "")
	address := srv.URL + "/mcp"
	u := openUser(t, withoutBrowser(ownCommand(t, dir, "run", address)), "legacy", "secret")
	if u.waitFor("wants a login"); runtime.GOOS == "linux" { // other systems always have a command for a browser
		u.waitFor("In a terminal run: outlive login " + address)
	}
	cmd := withoutBrowser(ownCommand(t, dir, "login", address, "--no-browser"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := loginBy(t, dir, cmd, func(page string) {
		req, err := http.NewRequest(http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		fmt.Fprintf(in, "%s\n\n  %s  \n", page, resp.Header.Get("Location"))
	})
	for _, want := range []string{"paste that address here", "this login ends at another address: copy all of it", "127.0.0.1: authorized"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if line := u.wait("0"); !strings.Contains(line, "guarded") {
		t.Errorf("the handshake: %s", line)
	}
	u.call()
	if err := u.client.Close(); err != nil {
		t.Error(err)
	}
}

// browse opens a page like a browser whose user consents.
func browse(t *testing.T, page string) {
	t.Helper()
	resp, err := http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if !strings.Contains(string(body), "Authorized") {
		t.Errorf("the browser shows %q", body)
	}
}

// A server without a possible login says why.
func TestLoginWhere(t *testing.T) {
	file := &config.File{Name: "outlive.yaml", Servers: []config.Server{
		{Name: "a", Transport: config.Stdio}, {Name: "b", Transport: config.HTTP}, {Name: "off", Transport: config.HTTP, Disabled: true},
		{Name: "key", Transport: config.HTTP, Auth: &config.Credentials{Bearer: "x"}},
	}}
	for name, want := range map[string]string{
		"a": "started by a command", "off": "disabled", "key": "bearer token", "c": "no server \"c\"; with a url: b, off, key", "b": "",
	} {
		_, err := remoteServer(file, name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestGrantFile(t *testing.T) {
	path := grantFile(filepath.Join(t.TempDir(), "oauth", "x.json"))
	if g, err := path.Load(); err != nil || g.AccessToken != "" {
		t.Errorf("without a file: %+v, %v", g, err)
	}
	want := remote.Grant{Issuer: "i", AccessToken: "a", Scopes: []string{"s"}}
	for range 2 { // the second replaces the first
		if err := path.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := path.Load()
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", d, err)
	}
	if left, err := os.ReadDir(filepath.Dir(string(path))); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.WriteFile(string(path), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := path.Load(); err == nil || !strings.Contains(err.Error(), "log in again") {
		t.Errorf("a broken file: %v", err)
	}
}
