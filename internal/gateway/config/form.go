package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// Forms that are a pattern only.
var (
	// serverName is used in file names, log lines and, with dots replaced, tool names.
	serverName = schema.Matching(lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`), "a server's name", "use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
	viewName   = schema.Matching(serverName.Pattern, "cannot be a view's name", serverName.Hint)
	prefixForm = schema.Matching(lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`), "is not a prefix", "use letters, digits, dash and underscore; for none, write names: never at the top")
	inputID    = schema.Matching(lazyregexp.New(`^[^\s{}$:]+$`), "is not an input id", "use letters, digits, dash and underscore")
	envName    = schema.Matching(lazyregexp.New(`^[^=\x00\s]+$`), "is not a variable name", "use letters, digits and underscore")
	headerName = schema.Matching(lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), "is not a header name", "use letters, digits and dash")
	notEmpty   = schema.Matching(lazyregexp.New(`\S`), "is empty", "write a value, or remove the key")
	oneLine    = schema.Matching(lazyregexp.New(`^[^\x00-\x08\x0a-\x1f\x7f]*$`), "has a line break or another control character", "a header is one line")
	noNUL      = schema.Matching(lazyregexp.New(`^[^\x00]*$`), "has a NUL character", "remove it: no program can take it")
	// toolName is what MCP allows (2025-11-25, tools: names).
	toolName = schema.Matching(lazyregexp.New(`^[A-Za-z0-9_./-]{1,128}$`), "is not a tool name", "use up to 128 letters, digits, dashes, underscores, dots and slashes")
	sizeText = schema.Matching(lazyregexp.New(`^[0-9]{1,15} ?[KMG]?(i?B)?$`), "is not a size", "write it like 512MiB")
)

// durationForm are durations as Go writes them, since that is what flags take.
var durationForm = &schema.Form{Pattern: lazyregexp.New(`^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`), Judge: func(s string) (string, string) {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d < 0:
		return "is negative", "write a duration like 30s"
	case err == nil:
		return "", ""
	case strings.Trim(s, "0123456789") == "" && s != "":
		return "has no unit", "write " + s + "s, " + s + "ms or " + s + "m"
	}
	return "is not a duration", "write it like 500ms, 30s or 1h30m"
}}

// spanForm are durations of which 0 is no time: it would read as either at once or never, and means the default.
var spanForm = &schema.Form{Pattern: durationForm.Pattern, Judge: durationForm.Judge, Old: func(s string) (string, string) {
	if d, err := time.ParseDuration(s); err != nil || d != 0 {
		return "", ""
	}
	return "is no time, and means the default", "write one like 30m, or remove the key"
}}

var sizeForm = &schema.Form{Pattern: sizeText.Pattern, Judge: func(s string) (string, string) {
	if message, hint := sizeText.Check(s); message != "" {
		return message, hint
	}
	if n := sizeOf(s); n <= 0 || n > 1<<40 {
		return "is out of range", "write a size from 1 to 1024GiB"
	}
	return "", ""
}}

// sizeOf reads what sizeText lets through: bytes, in powers of 1024.
func sizeOf(s string) int64 {
	digits := strings.TrimRight(s, " KMGiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	shift := 0
	if unit := strings.TrimSpace(s[len(digits):]); unit != "" {
		shift = 10 * (1 + strings.IndexByte("KMG", unit[0])) // none of them: bytes
	}
	if n > 1<<40>>shift {
		return 1 << 62
	}
	return n << shift
}

// globForm are globs as path.Match reads them, which is what the catalogue matches tools with.
var globForm = &schema.Form{Judge: func(s string) (string, string) {
	if s == "" {
		return "is empty", `write a tool's name, or a pattern such as "read_*"`
	}
	if _, err := path.Match(s, ""); err != nil {
		return "is not a glob", `close the [, or write \[ for the character`
	}
	return "", ""
}}

// urlForm are the URLs that Streamable HTTP can use.
var urlForm = &schema.Form{Pattern: lazyregexp.New(`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]`), Judge: func(s string) (string, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL", "write it like https://host/mcp"
	case u.Scheme != "http" && u.Scheme != "https":
		return "has no scheme that is spoken here", "write http:// or https://"
	case u.Hostname() == "":
		return "names no host", "write it like https://host/mcp"
	case !portFits(u.Port()):
		return "has no possible port", "ports go from 1 to 65535"
	case u.Fragment != "":
		return "has a fragment (#…)", "remove it: it is not sent"
	case u.User != nil:
		return "holds a user name or password", "put them into headers, or use auth"
	}
	return "", ""
}}

// issuerForm are URLs whose word is trusted: nobody in between may change it.
var issuerForm = &schema.Form{Pattern: urlForm.Pattern, Judge: func(s string) (string, string) {
	if message, hint := urlForm.Check(s); message != "" {
		return message, hint
	}
	if u, _ := url.Parse(s); u.Scheme == "http" && !peer.IsLoopback(u.Hostname()) {
		return "is not encrypted", "write https://"
	}
	return "", ""
}}

// originForm are what browsers send as Origin.
var originForm = &schema.Form{Pattern: lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]+$`), Judge: func(s string) (string, string) {
	u, err := url.Parse(s)
	switch {
	case s == "*":
		return "would let every web page in", "name the origins, such as https://app.example"
	case err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "is not an origin", "write scheme and host only: https://app.example"
	}
	return "", ""
}}

// hostForm are what HTTP has as Host.
var hostForm = schema.Matching(lazyregexp.New(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`), "is not a host", "write a name without scheme and path: mcp.example, or mcp.example:8443")

// hostName is a host that is not an address.
var hostName = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

var listenForm = &schema.Form{Pattern: lazyregexp.New(`:[0-9]{1,5}$`), Judge: func(s string) (string, string) {
	host, port, err := net.SplitHostPort(s)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 || strings.Trim(port, "0123456789") != "" {
		return "is not a host:port", "write it like 127.0.0.1:8080"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName.MatchString(host) {
		return "has no possible host", "write it like 127.0.0.1:8080"
	}
	return "", ""
}}

func portFits(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && 0 < n && n < 65536
}

// CheckToken says why a text cannot be a bearer token, or returns nil. The error does not show the text.
func CheckToken(text string) error {
	if message, hint := tokenForm.Check(text); message != "" {
		return fmt.Errorf("%s: %s", message, hint)
	}
	return nil
}

// CheckListen says why an address, such as that of --listen, cannot be used, or nil. authorized tells whether clients
// have to show a token: without one, anybody who reaches the address could call every tool, so that only loopback is
// allowed.
func CheckListen(address string, authorized bool) error {
	message, hint := listenForm.Check(address)
	if message == "" {
		message, hint = openListen(address, authorized)
	}
	if message != "" {
		return fmt.Errorf("%q %s: %s", address, message, hint)
	}
	return nil
}

func openListen(address string, authorized bool) (message, hint string) {
	if host, _, _ := net.SplitHostPort(address); authorized || peer.IsLoopback(host) {
		return "", ""
	}
	return "lets any host on the network call every tool", "add auth with a bearer token or oauth, or listen on 127.0.0.1"
}
