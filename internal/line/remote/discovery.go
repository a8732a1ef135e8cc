package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// maxMetadata is the longest metadata document or token answer read, in bytes.
const maxMetadata = 1 << 20

// discovered is where tokens for a server come from.
type discovered struct {
	resource string   // what the token is for (RFC 8707)
	scopes   []string // that the resource knows
	server   authServer
}

// resourceMetadata is what is read of RFC 9728.
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// authServer is what is read of RFC 8414 and OpenID Connect Discovery.
type authServer struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	Scopes                []string `json:"scopes_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	TokenAuth             []string `json:"token_endpoint_auth_methods_supported"`
	TellsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`

	// CallsItself is the issuer as the metadata have it, and as redirects name it. Issuer may have been put right since.
	CallsItself string `json:"-"`
}

// byteOrderMark is what some servers put before their JSON (RFC 8259, 8.1).
var byteOrderMark = []byte("\uFEFF")

// errNotThere says that a metadata document does not exist, which is not a fault.
var errNotThere = errors.New("no such document")

// discover finds the authorization server of an endpoint. What the metadata leaves out is as it was until 2025-03-26, when there
// was none: the server is its own authorization server, and the resource is the endpoint.
func (o *OAuth) discover(ctx context.Context, asked challenge) (discovered, error) {
	endpoint := o.endpoint
	resource, err := o.resourceOf(ctx, endpoint, asked)
	if err != nil && !errors.Is(err, errNotThere) {
		return discovered{}, err
	}
	issuer := (&url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host}).String()
	for i, one := range resource.Servers {
		if i == 0 || sameURI(one, o.opts.Issuer) {
			issuer = one
		}
	}
	server, err := o.serverOf(ctx, issuer)
	return discovered{resource: cmp.Or(resource.Resource, canonical(endpoint)), scopes: resource.Scopes, server: server}, err
}

// sameURI compares as RFC 3986 (6.2.3) does an empty path with "/", which lead to the same metadata; anything else letter by letter.
func sameURI(a, b string) bool { return a == b || rooted(a) == rooted(b) }

// rooted is a URI with "/" for an empty path.
func rooted(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	host := strings.IndexAny(rest+"/", "/?#")
	if !ok || host == 0 || strings.HasPrefix(rest[host:], "/") {
		return uri
	}
	return scheme + "://" + rest[:host] + "/" + rest[host:]
}

// canonical is the URI of a server without a slash that means nothing.
func canonical(endpoint *url.URL) string {
	u := url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host, Path: strings.TrimSuffix(endpoint.Path, "/"), RawQuery: endpoint.RawQuery}
	return u.String()
}

// resourceOf reads the protected-resource metadata where the challenge says, or at the well-known places. A server behind a proxy often
// names an address that only the proxy knows, or http.
func (o *OAuth) resourceOf(ctx context.Context, endpoint *url.URL, asked challenge) (resourceMetadata, error) {
	root := url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host, Path: "/.well-known/oauth-protected-resource"}
	places := []string{root.JoinPath(endpoint.Path).String(), root.String()}
	named, err := endpoint.Parse(asked.metadata) // some servers name it relative to their own URL
	if asked.metadata != "" && err == nil && o.mustBeSafe(named.String()) == nil {
		places = slices.Insert(places, 0, named.String())
	}
	for _, place := range places {
		var found resourceMetadata
		err := o.getJSON(ctx, place, &found)
		switch {
		case errors.Is(err, errNotThere) || err == nil && found.Resource == "" && len(found.Servers) == 0:
			continue // or a document of another kind, which a site gives for everything it does not know
		case err != nil:
			return found, fmt.Errorf("read the server's authorization metadata: %w", err)
		}
		if found.Resource != "" && !covers(found.Resource, endpoint) {
			return found, fmt.Errorf("the metadata at %s is about %q, not about %s", place, found.Resource, endpoint.Redacted())
		}
		return found, nil
	}
	return resourceMetadata{}, errNotThere
}

// covers reports whether a token for resource is meant for endpoint: the same origin, and its path or one above it.
func covers(resource string, endpoint *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || !sameOrigin(u, endpoint) {
		return false
	}
	above, path := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(endpoint.Path, "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// serverOf reads the metadata of an authorization server. Until 2025-03-26 none was needed: then the endpoints have fixed names at
// the root, also where a server names its MCP endpoint as its authorization server.
func (o *OAuth) serverOf(ctx context.Context, issuer string) (authServer, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return authServer{}, fmt.Errorf("read the authorization server's name: %w", err)
	}
	path := strings.TrimSuffix(u.Path, "/")
	base := url.URL{Scheme: u.Scheme, Host: u.Host}
	places := []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, path+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var found authServer
		err := o.getJSON(ctx, base.String()+place, &found)
		if errors.Is(err, errNotThere) {
			continue
		}
		if err != nil {
			return found, fmt.Errorf("read the metadata of %s: %w", issuer, err)
		}
		if !sameURI(found.Issuer, issuer) && !found.givesTokens() {
			return found, fmt.Errorf("the metadata of %s is that of %s, and its token endpoint is elsewhere: %s", issuer, found.Issuer, found.TokenEndpoint)
		}
		found.CallsItself = found.Issuer
		if self, err := url.Parse(found.Issuer); err != nil || !sameOrigin(u, self) || !sameURI(found.Issuer, o.opts.Issuer) {
			found.Issuer = issuer // only who answers at the origin of the configured issuer speaks for it
		}
		return found, o.checkServer(found)
	}
	root := base.String()
	server := authServer{
		Issuer: issuer, CallsItself: issuer,
		AuthorizationEndpoint: root + "/authorize", TokenEndpoint: root + "/token", RegistrationEndpoint: root + "/register",
	}
	return server, o.checkServer(server)
}

// givesTokens reports whether the issuer that the metadata name has the token endpoint, by its origin. Several large servers call
// themselves otherwise than they are called by the MCP server (Atlassian, Slack, Entra ID), against RFC 8414 (3.3). That rule keeps a
// code from whoever is not its issuer (mix-up), and so does this one: the code goes to the issuer that the redirect must name.
func (s authServer) givesTokens() bool {
	issuer, err1 := url.Parse(s.Issuer)
	endpoint, err2 := url.Parse(s.TokenEndpoint)
	return err1 == nil && err2 == nil && issuer.Host != "" && sameOrigin(issuer, endpoint)
}

// checkServer refuses endpoints that a secret must not be sent to.
func (o *OAuth) checkServer(s authServer) error {
	for _, place := range []string{s.AuthorizationEndpoint, s.TokenEndpoint, s.RegistrationEndpoint} {
		if place == "" {
			continue
		}
		if err := o.mustBeSafe(place); err != nil {
			return err
		}
	}
	if s.TokenEndpoint == "" {
		return fmt.Errorf("the metadata of %s names no token endpoint", s.Issuer)
	}
	return nil
}

// mustBeSafe wants https, or a loopback address if the MCP server is on loopback itself.
func (o *OAuth) mustBeSafe(place string) error {
	u, err := url.Parse(place)
	switch {
	case err != nil:
		return fmt.Errorf("read a URL of the authorization: %w", err)
	case u.Host != "" && u.Scheme == "https":
		return nil
	case u.Host == "" || u.Scheme != "http" || !peer.IsLoopback(u.Hostname()):
		return fmt.Errorf("%s is neither https nor on this machine", u.Redacted())
	case !peer.IsLoopback(o.endpoint.Hostname()):
		return fmt.Errorf("%s is on this machine, and %s is not: not connected", u.Redacted(), o.endpoint.Host)
	}
	return nil
}

// getJSON reads a metadata document.
func (o *OAuth) getJSON(ctx context.Context, place string, into any) error {
	if err := o.mustBeSafe(place); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", place, err)
	}
	status, body, err := o.answerTo(req)
	switch {
	case status == 0:
		return fmt.Errorf("get %s: %w", place, err)
	case status >= 500 || status == http.StatusTooManyRequests:
		return fmt.Errorf("get %s: HTTP %d", place, status)
	case status != http.StatusOK:
		return errNotThere
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(into); err != nil { // also of what was cut off
		return errNotThere // a site's page for everything it does not know, as a rule
	}
	return nil
}
