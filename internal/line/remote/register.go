package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// identify fills in our client identity at an authorization server: the configured one, one registered before, or one that is
// registered now, in this order (2026-07-28, "Client Registration"). One that was registered before may ask for what it has been granted.
func (o *OAuth) identify(ctx context.Context, g Grant, server authServer, redirect string, scopes []string) (Grant, error) {
	known, at := g.ClientID, g.RedirectURI
	more := slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(g.Scopes, s) })
	g.RedirectURI = redirect
	switch {
	case o.opts.ClientID != "":
		g.ClientID, g.ClientSecret = o.opts.ClientID, o.opts.ClientSecret
		g.ClientAuth = wayToAuthenticate(g.ClientSecret, server.TokenAuth)
		return g, nil
	case known != "" && at == redirect && !(more && server.RegistrationEndpoint != ""):
		return g, nil
	case server.RegistrationEndpoint != "":
		return o.register(ctx, g, server, scopes)
	}
	return g, fmt.Errorf("%s lets no client register itself: configure a client id", server.Issuer)
}

// registration is what a client says of itself (RFC 7591).
type registration struct {
	ClientName      string   `json:"client_name,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	ApplicationType string   `json:"application_type"`
	TokenAuth       string   `json:"token_endpoint_auth_method,omitempty"`
	Scope           string   `json:"scope,omitempty"` // many servers let a client ask for no other
}

func (o *OAuth) register(ctx context.Context, g Grant, server authServer, scopes []string) (Grant, error) {
	text, err := json.Marshal(registration{
		ClientName: "outlive", RedirectURIs: []string{g.RedirectURI}, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenAuth: preferredAuth(server.TokenAuth), Scope: joinScopes(scopes),
	})
	if err != nil {
		return g, fmt.Errorf("register at %s: %w", server.Issuer, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.RegistrationEndpoint, bytes.NewReader(text))
	if err != nil {
		return g, fmt.Errorf("register at %s: %w", server.Issuer, err)
	}
	req.Header.Set("Content-Type", "application/json")
	status, body, err := o.answerTo(req)
	if err != nil {
		return g, fmt.Errorf("register at %s: %w", server.Issuer, err)
	}
	if status >= 400 && status < 500 {
		named, about := byName(g.RedirectURI), status == http.StatusForbidden || bytes.Contains(body, []byte("redirect"))
		switch {
		case about && named != g.RedirectURI: // some take no address there, or have a firewall that does not
			g.RedirectURI = named
			return o.register(ctx, g, server, scopes)
		case len(scopes) > 0: // some let no client name scopes, or not these
			return o.register(ctx, g, server, nil)
		}
	}
	if status < 200 || status > 299 {
		return g, fmt.Errorf("register at %s: HTTP %d %s", server.Issuer, status, excerpt(body))
	}
	var made struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		TokenAuth    string `json:"token_endpoint_auth_method"`
	}
	if err := json.Unmarshal(body, &made); err != nil {
		return g, fmt.Errorf("register at %s: %w", server.Issuer, err)
	}
	if made.ClientID == "" {
		return g, errors.New("register at " + server.Issuer + ": it gave no client id")
	}
	g.ClientID, g.ClientSecret = made.ClientID, made.ClientSecret
	g.ClientAuth = cmp.Or(made.TokenAuth, wayToAuthenticate(g.ClientSecret, server.TokenAuth))
	return g, nil
}

// preferredAuth is how a client on a user's machine, which can keep no secret, would like to show who it is.
func preferredAuth(offered []string) string {
	for _, way := range []string{authNone, authBasic, authPost} {
		if slices.Contains(offered, way) {
			return way
		}
	}
	return authNone
}
