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

// findKeys returns the URL of an issuer's keys. The issuer's metadata are looked for in the order MCP clients try: RFC 8414, then OpenID
// Connect with both positions of the path.
func findKeys(ctx context.Context, client *http.Client, issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("issuer %q is not a URL", issuer)
	}
	path := strings.TrimSuffix(u.Path, "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"}
	if path != "" {
		places = append(places, "/.well-known/openid-configuration"+path)
	}
	var failures []error
	for _, place := range places {
		where := u.Scheme + "://" + u.Host + place
		var metadata struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := getJSON(ctx, client, where, &metadata)
		switch {
		case err != nil:
		case metadata.Issuer != issuer: // RFC 8414, 3.3: a document of another issuer must not be used
			err = fmt.Errorf("read %s: it is of the issuer %q", where, metadata.Issuer)
		case metadata.Keys == "":
			err = fmt.Errorf("read %s: it has no jwks_uri", where)
		default:
			return metadata.Keys, nil
		}
		failures = append(failures, err)
	}
	return "", fmt.Errorf("find the keys of %s: %w", issuer, errors.Join(failures...))
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
