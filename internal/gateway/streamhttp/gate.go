package streamhttp

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// gate checks the Host and Origin of every request. A website can make its name resolve to this machine (DNS rebinding)
// so that the user's browser connects to us; the browser then sends that name as Host, and the website as Origin.
type gate struct {
	hosts   []string // lower case, with or without port
	origins []string // lower case
}

// OwnPage returns why a request may not use a page of this machine, or nothing: its Host has to name this machine, and its Origin,
// if it has one, the page's own.
func OwnPage(r *http.Request) string { return gate{}.check(r) }

// check returns why a request is refused, or nothing.
func (g gate) check(r *http.Request) string {
	if !g.ourHost(r) {
		return "Forbidden: the Host header names neither this machine nor a configured host"
	}
	if origins := r.Header["Origin"]; len(origins) > 1 || len(origins) == 1 && !g.originAllowed(r, origins[0]) {
		return "Forbidden: web pages of this Origin may not use the endpoint: list it in origins, in the configuration, if they are to"
	}
	return ""
}

// ourHost reports whether the Host is allowed.
func (g gate) ourHost(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	name := hostname(host)
	if peer.IsLoopback(name) || slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) {
		return true
	}
	// A literal address cannot be rebound: the sender has connected to it. Only our own counts.
	literal, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ours, err := netip.ParseAddrPort(local.String())
	return err == nil && ours.Addr().Unmap().WithZone("") == literal.Unmap().WithZone("")
}

// originAllowed accepts the endpoint's own origin, to which the request was sent, and the configured ones. Another port
// of this machine is another origin, which may have any page.
func (g gate) originAllowed(r *http.Request, origin string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(g.origins, origin) {
		return true
	}
	scheme, port := "http://", ":80"
	if r.TLS != nil {
		scheme, port = "https://", ":443"
	}
	return g.ourHost(r) && strings.TrimSuffix(origin, port) == scheme+strings.TrimSuffix(strings.ToLower(r.Host), port)
}

// hostname cuts the port and the brackets of an IPv6 address off.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// cors allows a browser page to read the answer. It reports whether the request was a preflight, which is answered. The
// Origin was checked before.
func (g gate) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	// The allowed headers cannot be listed: the Mcp-Param headers depend on the tools.
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
