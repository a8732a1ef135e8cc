// Command client is what the conformance suite tests as a client: the Go SDK's client over stdio on `outlive gateway`,
// which has the suite's server as its only backend. So what is judged on the wire is outlive's own HTTP client, its
// authorization included; the scenarios do what the SDK's own everything-client does.
//
//	conformance client --command client …
//
// It reads OUTLIVE_BIN, MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT. Where the
// gateway says that somebody must log in, it does: it runs `outlive gateway login`, is the browser that opens the page,
// and plays the scenario again.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// limit is shorter than the suite's own 30 s, so that a hang is told by us.
const limit = 25 * time.Second

// logins is how often a scenario may ask for authorization: some want more of it later.
const logins = 3

// given is MCP_CONFORMANCE_CONTEXT.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: client URL")
	}
	if os.Getenv(asBrowser) != "" {
		if err := browse(os.Args[1]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// asBrowser is the variable with which this program is the browser of a gateway with --open-browser.
const asBrowser = "OUTLIVE_CONFORMANCE_BROWSER"

// whileItRuns are the scenarios that want authorization again in the middle of a call, which waits for it.
var whileItRuns = []string{"auth/scope-step-up", "auth/scope-retry-limit", "auth/authorization-server-migration"}

// browse opens a page as a browser does, redirects and all.
func browse(url string) error {
	client := http.Client{Timeout: limit}
	page, err := client.Get(url)
	if err != nil {
		return fmt.Errorf("browse: %w", err)
	}
	defer page.Body.Close()
	_, err = io.Copy(io.Discard, page.Body)
	return err
}

// run plays one scenario with a gateway of its own before the server at url.
func run(url string) (err error) {
	var args given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			return fmt.Errorf("read the suite's context: %w", err)
		}
	}
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	dir, err := os.MkdirTemp("", "outlive-conformance-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	g, err := configure(dir, name, url, args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	play := scenarioOf(name)
	for range logins {
		if err = g.play(ctx, play, args); err == nil || !strings.Contains(err.Error(), "gateway login") {
			return err
		}
		log.Print(err)
		if err := g.login(ctx); err != nil {
			return err
		}
	}
	return g.play(ctx, play, args)
}

// gateway is outlive with the suite's server as its only backend. What it keeps, tokens above all, is in a directory of
// its own, because the suite plays many scenarios at once.
type gateway struct {
	config  string
	browser bool // it opens pages itself
	env     []string
}

// issuerOf is what a person is told by whoever gives out a client secret: the authorization server that it is for.
func issuerOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("the suite's server: %w", err)
	}
	var found struct {
		Servers []string `json:"authorization_servers"`
	}
	for _, path := range []string{u.Path, ""} {
		place := u.ResolveReference(&url.URL{Path: "/.well-known/oauth-protected-resource" + path}).String()
		answer, err := http.Get(place)
		if err != nil {
			return "", fmt.Errorf("ask the suite's server: %w", err)
		}
		err = json.NewDecoder(answer.Body).Decode(&found)
		_ = answer.Body.Close()
		if err == nil && len(found.Servers) > 0 {
			return found.Servers[0], nil
		}
	}
	return "", fmt.Errorf("%s names no authorization server", server)
}

func configure(dir, scenario, server string, args given) (*gateway, error) {
	quoted := func(v any) string {
		text, _ := json.Marshal(v)
		return string(text)
	}
	config := "names: never\nservers:\n  suite:\n    url: " + quoted(server) + "\n"
	switch {
	case args.ClientID != "":
		issuer, err := issuerOf(server)
		if err != nil {
			return nil, err
		}
		config += "    auth: {oauth: " + quoted(map[string]string{"client_id": args.ClientID, "client_secret": args.ClientSecret, "issuer": issuer}) + "}\n"
	case scenario == "auth/basic-cimd": // a client id that is a URL is the address of the client's metadata
		config += "    auth: {oauth: " + quoted(map[string]string{"client_id": "https://conformance-test.local/client-metadata.json"}) + "}\n"
	}
	path := filepath.Join(dir, "outlive.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return &gateway{config: path, browser: slices.Contains(whileItRuns, scenario), env: append(os.Environ(),
		"XDG_STATE_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_CONFIG_HOME="+dir, "BROWSER="+self, asBrowser+"=1")}, nil
}

// command is one of the gateway's.
func (g *gateway) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv("OUTLIVE_BIN"), append([]string{"gateway"}, args...)...)
	cmd.Env, cmd.Stderr = g.env, os.Stderr
	return cmd
}

// play connects a client and lets it do the scenario's steps.
func (g *gateway) play(ctx context.Context, play scenario, args given) (err error) {
	options := &mcp.ClientSessionOptions{}
	if version := os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"); version < "2026" {
		options.ProtocolVersion = version
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1.0.0"}, play.options)
	// Not ended with the context, so that it ends in order.
	flags := []string{"-c", g.config, "--no-tools"}
	if g.browser {
		flags = append(flags, "--open-browser")
	}
	cmd := g.command(context.WithoutCancel(ctx), flags...)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return play.steps(ctx, session, args)
}

// login authorizes outlive as its user would: the page that it prints is opened.
func (g *gateway) login(ctx context.Context) error {
	cmd := g.command(ctx, "login", "suite", "-c", g.config, "--no-browser", "--timeout", "10s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, "http") {
			if err := browse(page); err != nil {
				log.Print(err) // what comes of it, login says
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	return nil
}
