package config

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/pattern"
)

// The table of outlive.yaml. Whatever is added here is known to the reader and to the JSON Schema at once; outlive.go
// takes it into the File.

// Shapes that are used more than once.
var (
	textShape     = &shape{kind: aText, form: noNUL}
	filledText    = &shape{kind: aText, form: notEmpty}
	boolShape     = &shape{kind: aBool}
	countShape    = &shape{kind: aCount, least: 1}
	pathShape     = &shape{kind: aText, form: notEmpty}
	durationShape = &shape{kind: aText, form: durationForm, loose: true}
	sizeShape     = &shape{kind: aText, form: sizeForm, loose: true}
	argsShape     = &shape{kind: aList, of: textShape, doc: "argument"}
	globsShape    = &shape{kind: aListOrText, of: &shape{kind: aText, form: globForm}, doc: "glob"}
	scopesShape   = &shape{kind: aListOrText, of: filledText, doc: "scope"}
	envShape      = &shape{kind: aDict, names: envName, of: &shape{kind: aText, form: noNUL, loose: true}, doc: "value of the variable"}
	headersShape  = &shape{kind: aDict, names: headerName, of: &shape{kind: aText, form: oneLine}, doc: "value of the header"}
)

// keyOf makes the YAML key of a flag's name.
func keyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// shapeOf is the shape of a policy key's values.
func shapeOf(k PolicyKey) *shape {
	if len(k.Enum) > 0 {
		return &shape{kind: aWord, words: k.Enum}
	}
	switch k.Kind {
	case Bool:
		return boolShape
	case Int:
		return &shape{kind: aCount}
	case Duration:
		return durationShape
	case Size:
		return sizeShape
	case List:
		return &shape{kind: aListOrText, of: filledText}
	}
	return &shape{kind: aText, form: noNUL, loose: true}
}

func policyKeys(keys []PolicyKey) []key {
	var out []key
	for _, k := range keys {
		out = append(out, key{name: keyOf(k.Name), shape: shapeOf(k), doc: k.Usage})
	}
	return out
}

// rootShape is outlive.yaml as a whole.
func rootShape(policy []PolicyKey) *shape {
	own := policyKeys(policy)
	return &shape{kind: anObject, open: true, keys: []key{
		{name: "names", shape: &shape{kind: aWord, words: []string{string(NamesAlways), string(NamesOnCollision), string(NamesNever)}},
			doc: "when a tool's name gets its server's prefix: always (the default), on-collision, or never"},
		{name: "listen", shape: &shape{kind: aText, form: listenForm}, doc: "host:port to speak Streamable HTTP on; without it, stdio. --listen overrides it"},
		{name: "auth", shape: authShape, doc: "who may use the HTTP endpoint"},
		{name: "local_users", shape: &shape{kind: aWord, words: []string{string(LocalOwn), string(LocalToken), string(LocalAny)}},
			doc: "which users of this machine may use the HTTP endpoint without auth: own (the default where the system can tell users apart): this one and root; token (the default elsewhere): who has the token that is made for them; any"},
		{name: "tls", shape: tlsShape, doc: "certificate of the HTTP endpoint"},
		{name: "origins", shape: &shape{kind: aListOrText, of: &shape{kind: aText, form: originForm}, doc: "origin, as scheme://host[:port]"},
			doc: "origins of web pages that may use the HTTP endpoint, besides its own"},
		{name: "hosts", shape: &shape{kind: aListOrText, of: &shape{kind: aText, form: hostForm}, doc: "host, or host:port"},
			doc: "Host headers that are accepted, besides loopback"},
		{name: "limits", shape: limitsShape, doc: "limits of the HTTP endpoint"},
		{name: "inputs", shape: &shape{kind: aList, of: inputShape, doc: "value that is asked for"},
			doc: "values that are asked for when ${input:ID} needs them, as in VS Code"},
		{name: "defaults", shape: &shape{kind: anObject, open: true, keys: own}, doc: "policy of every server that does not say otherwise"},
		{name: "servers", shape: &shape{kind: aDict, names: serverName, of: serverShape(own), doc: "one MCP server: a command, or a url"},
			required: true, doc: "the MCP servers by name"},
	}}
}

var authShape = &shape{kind: anObject, keys: []key{
	{name: "bearer", shape: &shape{kind: aListOrText, of: &shape{kind: aText, form: tokenForm}, doc: "token, such as ${env:OUTLIVE_TOKEN}"},
		doc: "tokens, any of which opens"},
	{name: "oauth", doc: "OAuth 2.1: JWTs of this authorization server open", shape: &shape{kind: anObject, keys: []key{
		{name: "issuer", shape: &shape{kind: aText, form: issuerForm}, required: true, doc: "URL of the authorization server"},
		{name: "resource", shape: &shape{kind: aText, form: issuerForm}, required: true, doc: "our own URL as clients see it; tokens must be meant for it"},
		{name: "scopes", shape: scopesShape, doc: "scopes that a token must have"},
	}}},
}}

// tokenForm are tokens as RFC 6750 has them, so that no header can be broken and nothing empty opens.
var tokenForm = matching(pattern.New(`^[A-Za-z0-9._~+/-]+=*$`), "is no bearer token", "use letters, digits and . _ ~ + / - only")

var tlsShape = &shape{kind: anObject, keys: []key{
	{name: "cert", shape: pathShape, required: true, doc: "PEM file of the certificate and its chain"},
	{name: "key", shape: pathShape, required: true, doc: "PEM file of the private key"},
}}

// mostInstances is how many processes of one server may share requests: each is started with the gateway.
const mostInstances = 64

var limitsShape = &shape{kind: anObject, keys: []key{
	{name: "body", shape: sizeShape, doc: "longest request, such as 16MiB"},
	{name: "sessions", shape: countShape, doc: "most sessions at once"},
	{name: "session_idle", shape: durationShape, doc: "how long a session may be unused, such as 30m"},
	{name: "session_release", shape: durationShape, doc: "how long a session may be unused before its processes end, such as 2m"},
	{name: "processes", shape: countShape, doc: "most processes of sessions at once"},
	{name: "connections", shape: countShape, doc: "most connections at once"},
}}

var inputShape = &shape{kind: anObject, keys: []key{
	{name: "id", shape: &shape{kind: aText, form: inputID}, required: true, doc: "name for ${input:ID}"},
	{name: "type", shape: &shape{kind: aWord, words: []string{"promptString", "pickString"}}, doc: "promptString (the default), or pickString: one of options"},
	{name: "description", shape: textShape, doc: "what is shown to whoever is asked"},
	{name: "password", shape: boolShape, doc: "do not show what is typed"},
	{name: "default", shape: textShape, doc: "value if nobody can be asked"},
	{name: "options", shape: &shape{kind: aList, of: textShape, doc: "value"}, doc: "the only values"},
}}

// serverShape is one server. Its own keys stand before the policy, and win over a policy key of the same name.
func serverShape(policy []key) *shape {
	keys := []key{
		{name: "command", shape: &shape{kind: aText, form: notEmpty}, doc: "program to start"},
		{name: "args", shape: argsShape, doc: "its arguments"},
		{name: "env", shape: envShape, doc: "variables for it, besides those that outlive has"},
		{name: "cwd", shape: pathShape, doc: "folder to start it in, relative to this file (default: where outlive runs)"},
		{name: "url", shape: &shape{kind: aText, form: urlForm}, doc: "URL of a server elsewhere, reached by Streamable HTTP"},
		{name: "headers", shape: headersShape, doc: "headers for it"},
		{name: "auth", shape: credentialsShape, doc: "what to show to it"},
		{name: "disabled", shape: boolShape, doc: "leave this server out"},
		{name: "prefix", shape: &shape{kind: aText, form: prefixForm}, doc: "of its tools' names (default: the server's name)"},
		{name: "allow", shape: globsShape, doc: "globs of the tools that are shown, by the server's own names (default: all)"},
		{name: "deny", shape: globsShape, doc: "globs of tools that are not shown, even if allow has them"},
		{name: "rename", shape: &shape{kind: aDict, of: &shape{kind: aText, form: toolName}, doc: "name that is shown, before the prefix"},
			doc: "the server's own name of a tool: the name that is shown"},
		{name: "shared", shape: boolShape, doc: "all sessions of clients use one process (default: each session has its own)"},
		{name: "instances", shape: &shape{kind: aCount, least: 1, most: mostInstances}, doc: "processes that share the requests without session (default 1)"},
	}
	s := &shape{kind: anObject, open: true, keys: keys}
	for _, k := range policy {
		if s.key(k.name) == nil {
			s.keys = append(s.keys, k)
		}
	}
	return s
}

var credentialsShape = &shape{kind: anObject, keys: []key{
	{name: "bearer", shape: &shape{kind: aText, form: tokenForm}, doc: "token, such as ${env:TOKEN}"},
	{name: "oauth", doc: "OAuth 2.1; what is not given is found out or registered", shape: &shape{kind: anObject, keys: []key{
		{name: "client_id", shape: filledText, doc: "our id at the authorization server"},
		{name: "client_secret", shape: filledText, doc: "its secret; wants issuer"},
		{name: "issuer", shape: &shape{kind: aText, form: issuerForm},
			doc: "URL of the only authorization server to ask (default: the one that the server names at the first login)"},
		{name: "scopes", shape: scopesShape, doc: "scopes to ask for"},
		{name: "resource", shape: &shape{kind: aText, form: urlForm}, doc: "resource to ask for (default: url)"},
		{name: "callback_port", shape: &shape{kind: aCount, least: 1}, doc: "port of the redirect on loopback (default: any)"},
	}}},
}}
