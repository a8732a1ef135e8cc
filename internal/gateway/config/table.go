package config

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// The schema of outlive.yaml. A key that is added here is known to the reader and in the JSON Schema; outlive.go
// copies its value into the File.

// Shapes that are used more than once.
var (
	textShape     = &schema.Shape{Kind: schema.Text, Form: noNUL}
	filledText    = &schema.Shape{Kind: schema.Text, Form: notEmpty}
	boolShape     = &schema.Shape{Kind: schema.Bool}
	countShape    = &schema.Shape{Kind: schema.Count, Least: 1}
	pathShape     = &schema.Shape{Kind: schema.Text, Form: notEmpty}
	durationShape = &schema.Shape{Kind: schema.Text, Form: durationForm, Loose: true}
	spanShape     = &schema.Shape{Kind: schema.Text, Form: spanForm, Loose: true}
	sizeShape     = &schema.Shape{Kind: schema.Text, Form: sizeForm, Loose: true}
	argsShape     = &schema.Shape{Kind: schema.List, Of: textShape, Doc: "argument"}
	globShape     = &schema.Shape{Kind: schema.Text, Form: globForm}
	denyShape     = &schema.Shape{Kind: schema.ListOrText, Of: globShape, Doc: "glob"}
	allowShape    = &schema.Shape{Kind: schema.ListOrText, Of: globShape, Doc: "glob", Filled: `name the tools; for all, remove the key, and for none write deny: "*"`}
	scopesShape   = &schema.Shape{Kind: schema.ListOrText, Of: filledText, Doc: "scope"}
	envShape      = &schema.Shape{Kind: schema.Dict, Names: envName, Of: &schema.Shape{Kind: schema.Text, Form: noNUL, Loose: true}, Doc: "value of the variable"}
	headersShape  = &schema.Shape{Kind: schema.Dict, Names: headerName, Of: &schema.Shape{Kind: schema.Text, Form: oneLine}, Doc: "value of the header"}
)

// keyOf returns the YAML key of a flag.
func keyOf(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// shapeOf is the schema of a policy key's values.
func shapeOf(k PolicyKey) *schema.Shape {
	if len(k.Enum) > 0 {
		return &schema.Shape{Kind: schema.Word, Words: k.Enum}
	}
	switch k.Kind {
	case Bool:
		return boolShape
	case Int:
		return &schema.Shape{Kind: schema.Count}
	case Duration:
		return durationShape
	case Size:
		return sizeShape
	case List:
		return &schema.Shape{Kind: schema.ListOrText, Of: filledText}
	}
	return &schema.Shape{Kind: schema.Text, Form: noNUL, Loose: true}
}

func policyKeys(keys []PolicyKey) []schema.Key {
	var out []schema.Key
	for _, k := range keys {
		out = append(out, schema.Key{Name: keyOf(k.Name), Shape: shapeOf(k), Doc: k.Usage})
	}
	return out
}

// rootShape is the schema of outlive.yaml.
func rootShape(policy []PolicyKey) *schema.Shape {
	own := policyKeys(policy)
	return &schema.Shape{Kind: schema.Object, Open: "for anchors", Keys: []schema.Key{
		{Name: "names", Shape: &schema.Shape{Kind: schema.Word, Words: []string{string(catalog.Always), string(catalog.OnCollision), string(catalog.Never)}},
			Doc: "when a tool's name gets its server's prefix: always (the default), on-collision, or never"},
		{Name: "listen", Shape: &schema.Shape{Kind: schema.Text, Form: listenForm}, Doc: "host:port to speak Streamable HTTP on; without it, stdio. --listen overrides it"},
		{Name: "auth", Shape: authShape, Doc: "who may use the HTTP endpoint"},
		{Name: "local_users", Shape: &schema.Shape{Kind: schema.Word, Words: []string{string(LocalOwn), string(LocalToken), string(LocalAny)}},
			Doc: "which users of this machine may use the HTTP endpoint without auth: own (the default where the system can tell users apart): this one and root; token (the default elsewhere): who has the token that is made for them; any"},
		{Name: "tls", Shape: tlsShape, Doc: "certificate of the HTTP endpoint"},
		{Name: "origins", Shape: &schema.Shape{Kind: schema.ListOrText, Of: &schema.Shape{Kind: schema.Text, Form: originForm}, Doc: "origin, as scheme://host[:port]"},
			Doc: "origins of web pages that may use the HTTP endpoint, besides its own"},
		{Name: "hosts", Shape: &schema.Shape{Kind: schema.ListOrText, Of: &schema.Shape{Kind: schema.Text, Form: hostForm}, Doc: "host, or host:port"},
			Doc: "Host headers that are accepted, besides loopback"},
		{Name: "sessions", Shape: &schema.Shape{Kind: schema.Word, Words: []string{string(SessionsOnDisk), string(SessionsInMemory), string(SessionsInFleet)}},
			Doc: "where the sessions of HTTP clients are kept: disk (the default): they go on when the gateway was killed or started again; memory: they end with it; fleet: the other ones of several gateways go on with them (--peer-listen)"},
		{Name: "limits", Shape: limitsShape, Doc: "limits of the HTTP endpoint"},
		{Name: "inputs", Shape: &schema.Shape{Kind: schema.List, Of: inputShape, Doc: "value that is asked for"},
			Doc: "values that are asked for when ${input:ID} needs them, as in VS Code"},
		{Name: "defaults", Shape: &schema.Shape{Kind: schema.Object, Open: "for anchors", Keys: own}, Doc: "policy of every server that does not say otherwise"},
		{Name: "servers", Shape: &schema.Shape{Kind: schema.Dict, Names: serverName, Of: serverShape(own), Doc: "one MCP server: a command, or a url"},
			Required: true, Doc: "the MCP servers by name"},
		{Name: "views", Shape: &schema.Shape{Kind: schema.Dict, Names: viewName, Of: viewShape, Doc: "what some clients see: these servers and tools, and nothing else"},
			Doc: "parts of all this by name, each at the endpoint's path with /NAME"},
	}}
}

// viewShape is the schema of a view. What is shown of a server are the keys that servers have for it, too.
var viewShape = &schema.Shape{Kind: schema.Object, Open: "for anchors", Keys: []schema.Key{
	{Name: "servers", Shape: &schema.Shape{Kind: schema.Dict, Of: &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
		{Name: "allow", Shape: allowShape, Doc: "globs of the tools that this view has, by the server's own names (default: all that the server shows)"},
		{Name: "deny", Shape: denyShape, Doc: "globs of tools that it does not have, even if allow has them"},
	}}, Alone: &schema.Shape{Kind: schema.ListOrText, Of: filledText, Doc: "name of a server"}, Doc: "what this view has of the server (default: all that it shows)"},
		Required: true, Doc: "the servers that it has: their names, or names with allow and deny"},
	{Name: "bearer", Shape: tokensShape, Doc: "tokens of clients that see this view and nothing else"},
	{Name: "subjects", Shape: &schema.Shape{Kind: schema.ListOrText, Of: &schema.Shape{Kind: schema.Text, Form: globForm}, Doc: "glob of a subject"},
		Doc: "globs of the subjects (sub) of JWTs that see this view and nothing else; the first view that has one counts"},
	{Name: "no_tools", Shape: boolShape, Doc: "without outlive_server_status and outlive_restart_server"},
}}

var tokensShape = &schema.Shape{Kind: schema.ListOrText, Of: &schema.Shape{Kind: schema.Text, Form: tokenForm}, Doc: "token, such as ${env:OUTLIVE_TOKEN}"}

var authShape = &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
	{Name: "bearer", Shape: tokensShape, Doc: "tokens, any of which opens everything"},
	{Name: "oauth", Doc: "OAuth 2.1: JWTs of this authorization server open", Shape: &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
		{Name: "issuer", Shape: &schema.Shape{Kind: schema.Text, Form: issuerForm}, Required: true, Doc: "URL of the authorization server"},
		{Name: "resource", Shape: &schema.Shape{Kind: schema.Text, Form: issuerForm}, Required: true, Doc: "our own URL as clients see it; tokens must be meant for it"},
		{Name: "scopes", Shape: scopesShape, Doc: "scopes that a token must have"},
	}}},
}}

// tokenForm is the form of bearer tokens in RFC 6750. It prevents broken headers and empty tokens.
var tokenForm = schema.Matching(lazyregexp.New(`^[A-Za-z0-9._~+/-]+=*$`), "is not a bearer token", "use letters, digits and . _ ~ + / - only")

var tlsShape = &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
	{Name: "cert", Shape: pathShape, Required: true, Doc: "PEM file of the certificate and its chain"},
	{Name: "key", Shape: pathShape, Required: true, Doc: "PEM file of the private key"},
}}

// mostInstances is the maximum number of processes of one server that share requests: all are started with the
// gateway.
const mostInstances = 64

var limitsShape = &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
	{Name: "body", Shape: sizeShape, Doc: "longest request, such as 16MiB"},
	{Name: "sessions", Shape: countShape, Doc: "most sessions at once"},
	{Name: "session_idle", Shape: spanShape, Doc: "how long a session may be unused, such as 30m"},
	{Name: "session_release", Shape: spanShape, Doc: "how long a session may be unused before its processes end, such as 2m"},
	{Name: "processes", Shape: countShape, Doc: "most processes of sessions at once"},
	{Name: "connections", Shape: countShape, Doc: "most connections at once"},
}}

var inputShape = &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
	{Name: "id", Shape: &schema.Shape{Kind: schema.Text, Form: inputID}, Required: true, Doc: "name for ${input:ID}"},
	{Name: "type", Shape: &schema.Shape{Kind: schema.Word, Words: []string{"promptString", "pickString"}}, Doc: "promptString (the default), or pickString: one of options"},
	{Name: "description", Shape: textShape, Doc: "what is shown to the user who is asked"},
	{Name: "password", Shape: boolShape, Doc: "do not show what is typed"},
	{Name: "default", Shape: textShape, Doc: "value where no user can be asked"},
	{Name: "options", Shape: &schema.Shape{Kind: schema.List, Of: textShape, Doc: "value"}, Doc: "the only values"},
}}

// Words of the key transport.
const (
	transportAuto = "auto"
	transportSSE  = "sse"
)

// serverShape is the schema of one server. No policy key has the name of one of its own, see [Schema].
func serverShape(policy []schema.Key) *schema.Shape {
	keys := []schema.Key{
		{Name: "command", Shape: &schema.Shape{Kind: schema.Text, Form: notEmpty}, Doc: "program to start"},
		{Name: "args", Shape: argsShape, Doc: "its arguments"},
		{Name: "env", Shape: envShape, Doc: "variables for it, besides those that outlive has"},
		{Name: "cwd", Shape: pathShape, Doc: "folder to start it in, relative to this file (default: where outlive runs)"},
		{Name: "url", Shape: urlShape, Doc: "URL of a server elsewhere, reached by Streamable HTTP"},
		{Name: "transport", Shape: &schema.Shape{Kind: schema.Word, Words: []string{transportAuto, transportSSE}},
			Doc: "auto (the default): what is spoken at the url is found out; sse: the HTTP+SSE of 2024-11-05 and nothing else"},
		{Name: "headers", Shape: headersShape, Doc: "headers for it"},
		{Name: "auth", Shape: credentialsShape, Doc: "what to show to it"},
		{Name: "disabled", Shape: boolShape, Doc: "leave this server out"},
		{Name: "prefix", Shape: &schema.Shape{Kind: schema.Text, Form: prefixForm}, Doc: "of its tools' names (default: the server's name)"},
		{Name: "allow", Shape: allowShape, Doc: "globs of the tools that are shown, by the server's own names (default: all)"},
		{Name: "deny", Shape: denyShape, Doc: "globs of tools that are not shown, even if allow has them"},
		{Name: "rename", Shape: &schema.Shape{Kind: schema.Dict, Of: &schema.Shape{Kind: schema.Text, Form: toolName}, Doc: "name that is shown, before the prefix"},
			Doc: "the server's own name of a tool: the name that is shown"},
		{Name: "shared", Shape: boolShape, Doc: "all sessions of clients use one process (default: each session has its own)"},
		{Name: "instances", Shape: &schema.Shape{Kind: schema.Count, Least: 1, Most: mostInstances}, Doc: "processes that share the requests without session (default 1)"},
	}
	return &schema.Shape{Kind: schema.Object, Open: "for anchors", Keys: append(keys, policy...)}
}

var credentialsShape = &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
	{Name: "bearer", Shape: &schema.Shape{Kind: schema.Text, Form: tokenForm}, Doc: "token, such as ${env:TOKEN}"},
	{Name: "oauth", Doc: "OAuth 2.1; what is not given is found out or registered", Shape: &schema.Shape{Kind: schema.Object, Keys: []schema.Key{
		{Name: "client_id", Shape: filledText, Doc: "our id at the authorization server"},
		{Name: "client_secret", Shape: filledText, Doc: "its secret; wants issuer"},
		{Name: "issuer", Shape: &schema.Shape{Kind: schema.Text, Form: issuerForm},
			Doc: "URL of the only authorization server to ask (default: the one that the server names at the first login)"},
		{Name: "scopes", Shape: scopesShape, Doc: "scopes to ask for"},
		{Name: "resource", Shape: urlShape, Doc: "resource to ask for (default: url)"},
		{Name: "callback_port", Shape: &schema.Shape{Kind: schema.Count, Least: 1}, Doc: "port of the redirect on loopback (default: any)"},
	}}},
}}
