//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// rotating is an MCP server with its authorization server, whose refresh tokens can be used only once. A second use
// ends the login: all tokens derived from it are revoked, as RFC 9700 (4.14.2) advises.
type rotating struct {
	*httptest.Server

	mu       sync.Mutex
	lifetime int // of access tokens in seconds
	slow     time.Duration
	trouble  string // error for the next renewals, in place of a token
	tokens   int
	family   map[string]int // login that a token came of
	access   map[string]bool
	refresh  map[string]bool // false: it was used
	dead     map[int]bool    // logins that were revoked
	logins   int
	reused   int
	renewed  int
}

func newRotating(t *testing.T, lifetime int) *rotating {
	t.Helper()
	a := &rotating{lifetime: lifetime, family: map[string]int{}, access: map[string]bool{}, refresh: map[string]bool{}, dead: map[int]bool{}}
	mux := http.NewServeMux()
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() { a.CloseClientConnections(); a.Close() })
	say := func(w http.ResponseWriter, status int, body map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
			"registration_endpoint": a.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 201, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"code"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		status, body := a.grant(r)
		a.mu.Lock()
		slow := a.slow
		a.mu.Unlock()
		time.Sleep(slow) // the answer is on its way
		say(w, status, body)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := a.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		a.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		serveGuarded(w, r)
	})
	return a
}

// grant answers a request for a token.
func (a *rotating) grant(r *http.Request) (int, map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = r.ParseForm()
	login := a.logins + 1
	if r.PostForm.Get("grant_type") == "refresh_token" {
		used := r.PostForm.Get("refresh_token")
		login = a.family[used]
		fresh, known := a.refresh[used]
		switch {
		case a.trouble != "":
			return 400, map[string]any{"error": a.trouble}
		case known && !fresh:
			a.reused++
			a.dead[login] = true
			a.revoke(login)
			fallthrough
		case !known || a.dead[login]:
			return 400, map[string]any{"error": "invalid_grant", "error_description": "reused"}
		}
		a.refresh[used] = false
		a.renewed++
	} else {
		a.logins = login
	}
	a.tokens++
	access, refresh := fmt.Sprintf("a%d", a.tokens), fmt.Sprintf("r%d", a.tokens)
	a.family[access], a.family[refresh], a.access[access], a.refresh[refresh] = login, login, true, true
	return 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": a.lifetime, "refresh_token": refresh}
}

func (a *rotating) revoke(login int) {
	for token := range a.access {
		if a.family[token] == login {
			a.access[token] = false
		}
	}
}

// expire ends every access token; refresh tokens stay good.
func (a *rotating) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// revokeAll ends every login.
func (a *rotating) revokeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	clear(a.refresh)
}

// set changes how the authorization server behaves.
func (a *rotating) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// ownOutlive makes a directory where this test binary is outlive, with a configuration.
func ownOutlive(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
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
	if err := os.WriteFile(filepath.Join(dir, "outlive.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gatewayUser is the client of an outlive process.
type gatewayUser struct {
	t      *testing.T
	tool   string // that it calls
	client *mcptest.Client
	stderr *transcript
	next   int
}

// openGateway starts `outlive gateway` on stdio.
func openGateway(t *testing.T, dir, name string) *gatewayUser {
	t.Helper()
	return openUser(t, ownCommand(t, dir, "gateway", "-c", "outlive.yaml", "--name", name), name, "far_secret")
}

// openUser starts a command as its client.
func openUser(t *testing.T, cmd *exec.Cmd, name, tool string) *gatewayUser {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	u := &gatewayUser{t: t, tool: tool, stderr: &transcript{}, next: 1}
	cmd.Stderr = u.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u.client = mcptest.NewClient(mcptest.Join(out, in))
	u.client.GoID("0", "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": name, "version": "1"}})
	_ = u.client.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return u
}

// ask sends a call and returns its id.
func (u *gatewayUser) ask() string {
	id := fmt.Sprint(u.next)
	u.next++
	u.client.GoID(id, "tools/call", map[string]any{"name": u.tool})
	return id
}

// wait returns the answer to a call.
func (u *gatewayUser) wait(id string) string {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), dialoguePatience)
	defer cancel()
	line, err := u.client.WaitFor(ctx, func(line string) bool { return strings.Contains(line, `"id":`+id+`,`) })
	if err != nil {
		u.t.Fatalf("call %s: %v\n%s\n%s", id, err, strings.Join(u.client.Lines(), "\n"), u.stderr.text())
	}
	return line
}

// call fails the test if the tool's answer does not come.
func (u *gatewayUser) call() {
	u.t.Helper()
	u.good(u.ask())
}

func (u *gatewayUser) good(id string) {
	u.t.Helper()
	if line := u.wait(id); !strings.Contains(line, "the secret") {
		u.t.Fatalf("call %s: %s\n%s", id, line, u.stderr.text())
	}
}

// Gateways that share one login renew it together: a refresh token is used once, however many processes need a new
// token at the same moment, and however short tokens live.
func TestGatewaysShareOneLogin(t *testing.T) {
	a := newRotating(t, 3)
	dir := ownOutlive(t, "servers:\n  far: {url: \""+a.URL+"/mcp\"}\n")
	login(t, dir)
	one, two := openGateway(t, dir, "one"), openGateway(t, dir, "two")
	one.call()
	two.call()
	a.set(func() { a.slow = 50 * time.Millisecond })
	for range 8 {
		a.expire()
		first, second := one.ask(), two.ask()
		one.good(first)
		two.good(second)
	}
	// One renews, the other comes back when even that token has expired.
	for _, u := range []*gatewayUser{one, one, two, one, two, two} {
		a.expire()
		u.call()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reused > 0 {
		t.Errorf("refresh tokens were used twice %d times", a.reused)
	}
	if a.renewed < 14 {
		t.Errorf("%d renewals only", a.renewed)
	}
}

// A temporary error of an authorization server does not end the login; and after a login has ended, every running
// gateway uses the new one as soon as the user has logged in, however short its tokens live.
func TestALoginIsKeptAndTakenUp(t *testing.T) {
	a := newRotating(t, 2)
	dir := ownOutlive(t, "servers:\n  far: {url: \""+a.URL+"/mcp\"}\n")
	login(t, dir)
	u := openGateway(t, dir, "one")
	u.call()
	for _, trouble := range []string{"slow_down", "temporarily_unavailable", "invalid_request", "invalid_client"} {
		a.set(func() { a.trouble = trouble })
		a.expire()
		if line := u.wait(u.ask()); !strings.Contains(line, trouble) || strings.Contains(line, "the secret") {
			t.Errorf("%s: %s", trouble, line)
		}
		a.set(func() { a.trouble = "" })
		u.call()
	}
	a.revokeAll()
	if line := u.wait(u.ask()); !strings.Contains(line, "run outlive gateway login far") {
		t.Errorf("after the login was revoked: %s", line)
	}
	if got := statusOf(t, dir); !strings.Contains(got, "one/far: failing: the server wants a login: run outlive gateway login far") ||
		!strings.Contains(got, "one/far  failing") {
		t.Errorf("status does not say what to do:\n%s", got)
	}
	login(t, dir)
	u.call()
	if got := statusOf(t, dir); !strings.Contains(got, "one/far  ready") {
		t.Errorf("after the login:\n%s", got)
	}
	if a.logins != 2 {
		t.Errorf("%d logins instead of 2", a.logins)
	}
	if left := grantsLeft(t, dir); !slices.Equal(left, []string{".json", ".lock"}) {
		t.Errorf("beside the grant: %q", left)
	}
}

// grantsLeft are the endings of the files where grants are kept.
func grantsLeft(t *testing.T, dir string) (endings []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "outlive", "oauth"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		endings = append(endings, filepath.Ext(f.Name()))
	}
	return endings
}
