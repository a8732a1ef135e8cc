//go:build unix

package cli

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// withoutBrowser takes from a command what could show a page.
func withoutBrowser(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "DISPLAY=", "WAYLAND_DISPLAY=", "BROWSER=")
	return cmd
}

// waitFor waits until something was said on stderr.
func (u *gatewayUser) waitFor(what string) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), dialoguePatience)
	defer cancel()
	for {
		changed := u.stderr.changing()
		if strings.Contains(u.stderr.text(), what) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			u.t.Fatalf("%q does not come:\n%s", what, u.stderr.text())
		}
	}
}

// Where no browser can be opened, `outlive run URL` says what to run, and continues by itself when that was done in
// another terminal. The time limit of the handshake does not count meanwhile.
func TestRunWaitsForALoginElsewhere(t *testing.T) {
	srv, dir := guarded(t), ownOutlive(t, "")
	url := srv.URL + "/mcp"
	u := openUser(t, withoutBrowser(ownCommand(t, dir, "run", "--start-timeout", "200ms", url)), "legacy", "secret")
	u.waitFor("127.0.0.1 wants a login: no browser is opened here. In a terminal run: outlive login " + url)
	if got := statusOf(t, dir); !strings.Contains(got, "127.0.0.1: failing: the server wants a login: run outlive login "+url) {
		t.Errorf("status does not say what to do:\n%s", got)
	}
	loginBy(t, dir, ownCommand(t, dir, "login", url, "--no-browser"), func(page string) { browse(t, page) })
	if line := u.wait("0"); !strings.Contains(line, "guarded") {
		t.Errorf("the handshake: %s", line)
	}
	u.call()
	// The login is checked every half second, which is longer than the time limit of the handshake.
	log := u.stderr.text()
	_, since, _ := strings.Cut(log, "wants a login")
	if strings.Contains(since, "did not take the handshake") || strings.Contains(since, "wants a login") {
		t.Errorf("it was not waited for:\n%s", log)
	}
	if got := statusOf(t, dir); strings.Contains(got, "login") {
		t.Errorf("status after the login:\n%s", got)
	}
	if err := u.client.Close(); err != nil {
		t.Error(err)
	}
	// The next run needs no login, and headers are sent with each request.
	next := openUser(t, withoutBrowser(ownCommand(t, dir, "run", url, "--header", "X-Team: ${HOME}")), "again", "team")
	if line := next.wait(next.ask()); !strings.Contains(line, dir) {
		t.Errorf("the header did not come: %s\n%s", line, next.stderr.text())
	}
}

// Of several processes that need the same login, one opens the page, also if its client begins with a probe that the
// server may not know; and all continue when the user has consented. If that process ends, the next one opens the
// page.
func TestRunOpensOnePage(t *testing.T) {
	srv, dir := guarded(t), ownOutlive(t, "")
	pages := filepath.Join(dir, "pages")
	if err := syscall.Mkfifo(pages, 0o600); err != nil {
		t.Fatal(err)
	}
	browser := filepath.Join(dir, "bin", "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$1\" >"+pages+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	opened, err := os.OpenFile(pages, os.O_RDWR, 0) // as a writer, too, so that it does not end
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	shown := make(chan string, 10)
	go func() {
		defer close(shown)
		for lines := bufio.NewScanner(opened); lines.Scan(); {
			shown <- lines.Text()
		}
	}()
	start := func(name string) (*gatewayUser, *exec.Cmd) {
		cmd := ownCommand(t, dir, "run", srv.URL+"/mcp", "--name", name)
		cmd.Env = append(cmd.Env, "BROWSER="+browser)
		return openUser(t, cmd, name, "secret"), cmd
	}
	gone, first := start("gone")
	<-shown
	second, _ := start("second")
	third, _ := start("third")
	second.waitFor("its page opens in the browser")
	third.waitFor("its page opens in the browser")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gone.client.Close() // it was killed
	browse(t, <-shown)
	second.call()
	third.call()
	if len(shown) > 0 {
		t.Errorf("another page was opened: %s", <-shown)
	}
}

// A client of the newer era first asks whether the server supports it. The answer comes before the user has logged
// in, and the page that was opened remains valid.
func TestRunKeepsThePageOfAProbe(t *testing.T) {
	srv, dir := guarded(t), ownOutlive(t, "")
	cmd := withoutBrowser(ownCommand(t, dir, "run", srv.URL+"/mcp"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	u := &gatewayUser{t: t, tool: "secret", stderr: &transcript{}, next: 1}
	cmd.Stderr = u.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u.client = mcptest.NewClient(mcptest.Join(out, in))
	u.client.GoID("7", "server/discover", map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
	u.wait("7")
	u.client.GoID("0", "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
	u.waitFor("wants a login")
	loginBy(t, dir, ownCommand(t, dir, "login", srv.URL+"/mcp", "--no-browser"), func(page string) { browse(t, page) })
	u.wait("0")
	_ = u.client.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	u.call()
	if n := strings.Count(u.stderr.text(), "wants a login"); n != 1 {
		t.Errorf("asked %d times:\n%s", n, u.stderr.text())
	}
}
