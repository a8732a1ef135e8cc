package streamhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxMetadata limits the answers of an authorization server, in bytes.
const maxMetadata = 1 << 20

// metadataURLs are the places of an authorization server's metadata, in the order MCP clients try: RFC 8414, then OpenID
// Connect with both positions of the path.
func metadataURLs(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("issuer %q is not a URL", issuer)
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := func(path string) string { return u.Scheme + "://" + u.Host + path }
	urls := []string{at("/.well-known/oauth-authorization-server" + path), at(path + "/.well-known/openid-configuration")}
	if path != "" {
		urls = append(urls, at("/.well-known/openid-configuration"+path))
	}
	return urls, nil
}

// findKeys returns the URL of an issuer's keys.
func findKeys(ctx context.Context, client *http.Client, issuer string) (string, error) {
	urls, err := metadataURLs(issuer)
	if err != nil {
		return "", err
	}
	var failures []error
	for _, where := range urls {
		keys, err := readMetadata(ctx, client, where, issuer)
		if err == nil {
			return keys, nil
		}
		failures = append(failures, err)
	}
	return "", fmt.Errorf("find the keys of %s: %w", issuer, errors.Join(failures...))
}

func readMetadata(ctx context.Context, client *http.Client, where, issuer string) (keys string, err error) {
	var metadata struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	switch err := getJSON(ctx, client, where, &metadata); {
	case err != nil:
		return "", err
	case metadata.Issuer != issuer: // RFC 8414, 3.3: a document of another issuer must not be used
		return "", fmt.Errorf("read %s: it is of the issuer %q", where, metadata.Issuer)
	case metadata.Keys == "":
		return "", fmt.Errorf("read %s: it has no jwks_uri", where)
	}
	return metadata.Keys, nil
}

// getJSON reads a document of an authorization server.
func getJSON(ctx context.Context, client *http.Client, where string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", where, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the issuer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // errors of closing do not matter
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s", where, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", where, err)
	}
	return nil
}
