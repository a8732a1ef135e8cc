//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// requestMain is the program "request": request GATEWAY PATH [HEADER: VALUE]… [BODY] sends a request to a running
// gateway, which is a name or begins with http://, and prints the status, the headers of the answer that MCP defines, and the body. With a body it is a POST
// with the headers that MCP requires, unless the given headers differ.
func requestMain() int {
	ctx, cancel := context.WithTimeout(context.Background(), dialoguePatience)
	defer cancel()
	if err := request(ctx, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "request:", err)
		return 1
	}
	return 0
}

func request(ctx context.Context, name, path string, rest []string) error {
	base, err := baseOf(ctx, name)
	if err != nil {
		return err
	}
	method, body := http.MethodGet, ""
	headers := http.Header{}
	for _, arg := range rest {
		if key, value, ok := strings.Cut(arg, ": "); ok && !strings.HasPrefix(arg, "{") {
			headers.Set(key, value)
			continue
		}
		method, body = http.MethodPost, arg
		headers.Set("Content-Type", "application/json")
		headers.Set("Accept", "application/json, text/event-stream")
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header, req.Host = headers, headers.Get("Host")
	client := http.Client{Timeout: dialoguePatience}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	for _, key := range []string{"Mcp-Session-Id", "Www-Authenticate"} {
		if value := resp.Header.Get(key); value != "" {
			fmt.Println(key + ": " + value)
		}
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

// baseOf is where a gateway listens.
func baseOf(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "http://") {
		return strings.TrimSuffix(name, "/mcp"), nil
	}
	all, err := askAll(ctx)
	base := ""
	for _, r := range all {
		if r.Is(name) {
			base = strings.TrimSuffix(r.status.URL, "/mcp")
		}
	}
	return base, err
}
