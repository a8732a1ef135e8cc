package config

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/files/schema"
)

// The keys of the clients' files, put together when such a file is read. Keys without a description are known but have no
// effect here: approvals, icons, the client's own records. A key that is in no schema is reported as a warning,
// because it may be misspelt.

// known makes keys that are accepted and have no effect here.
func known(names ...string) []schema.Key {
	keys := make([]schema.Key, len(names))
	for i, n := range names {
		keys[i] = schema.Key{Name: n, Shape: anyShape}
	}
	return keys
}

// with is an object with these keys, and with some that have no effect here.
func with(keys []schema.Key, silent ...string) *schema.Shape {
	return &schema.Shape{Kind: schema.Object, Keys: slices.Concat(keys, known(silent...))}
}

var (
	amountShape = &schema.Shape{Kind: schema.Amount, Most: 1e9}
	namesShape  = &schema.Shape{Kind: schema.ListOrText, Of: filledText}
	envOfClient = &schema.Shape{Kind: schema.Dict, Names: envName, Of: &schema.Shape{Kind: schema.Text, Form: noNUL, Loose: true}}
	urlShape    = &schema.Shape{Kind: schema.Text, Form: urlForm}
	anyShape    = &schema.Shape{Kind: schema.Anything}
)

// clientShape is the schema of one server's entry in a client's file. mcpServers has the keys of all clients with that format, because
// clients adopt each other's keys and users copy entries from one client to another.
func clientShape(format Format) *schema.Shape {
	s := &schema.Shape{Kind: schema.Object}
	for _, some := range []struct {
		in   []Format // nil: all
		keys []schema.Key
	}{
		{nil, []schema.Key{
			{Name: "command", Shape: filledText, Doc: "program"},
			{Name: "args", Shape: argsShape, Doc: "arguments"},
			{Name: "env", Shape: envOfClient, Doc: "variables"},
			{Name: "cwd", Shape: pathShape, Doc: "folder"},
			{Name: "url", Shape: urlShape, Doc: "URL"},
			{Name: "enabled", Shape: boolShape, Doc: "false: left out"},
			{Name: "oauth", Shape: anyShape, Doc: "client id and scopes"},
		}},
		{[]Format{MCPServers, VSCode, Zed}, []schema.Key{{Name: "headers", Shape: headersShape, Doc: "headers"}}},
		{[]Format{MCPServers, Zed}, []schema.Key{
			{Name: "timeout", Shape: amountShape, Doc: "of calls: milliseconds (Gemini CLI, Claude Code) or seconds (Cline, Roo Code, Zed)"},
		}},
		{[]Format{MCPServers, VSCode}, []schema.Key{
			{Name: "type", Shape: filledText, Doc: "transport"},
			{Name: "disabled", Shape: boolShape, Doc: "left out"},
			{Name: "envFile", Shape: pathShape, Doc: "Cursor, VS Code: file of variables"},
		}},
		{[]Format{MCPServers}, []schema.Key{
			{Name: "httpUrl", Shape: urlShape, Doc: "Gemini CLI: URL of Streamable HTTP"},
			{Name: "serverUrl", Shape: urlShape, Doc: "Windsurf: URL"},
			{Name: "transport", Shape: filledText, Doc: "transport"},
			{Name: "transportType", Shape: filledText, Doc: "Cline: transport"},
			{Name: "includeTools", Shape: namesShape, Doc: "Gemini CLI: the only tools"},
			{Name: "enabledTools", Shape: namesShape, Doc: "the only tools"},
			{Name: "tools", Shape: namesShape, Doc: "Copilot CLI: the only tools; *: all"},
			{Name: "excludeTools", Shape: namesShape, Doc: "Gemini CLI: no such tools"},
			{Name: "disabledTools", Shape: namesShape, Doc: "Windsurf, Roo Code: no such tools"},
			{Name: "watchPaths", Shape: namesShape, Doc: "Roo Code: files whose change restarts the server"},
			{Name: "auth", Shape: anyShape, Doc: "Cursor: client id and scopes"},
			{Name: "headersHelper", Shape: filledText, Doc: "Claude Code: a command that prints headers; not run here"},
		}},
		{[]Format{VSCode}, []schema.Key{
			{Name: "sandboxEnabled", Shape: boolShape, Doc: "not done here, which is told"},
			{Name: "dev", Shape: with([]schema.Key{{Name: "watch", Shape: namesShape, Doc: "globs whose change restarts the server"}}, "debug"), Doc: "development mode"},
		}},
		{[]Format{Zed}, []schema.Key{{Name: "source", Shape: filledText, Doc: "custom, or extension"}}},
		{[]Format{Codex}, []schema.Key{
			{Name: "env_vars", Shape: anyShape, Doc: "variables that are passed on"},
			{Name: "http_headers", Shape: headersShape, Doc: "headers"},
			{Name: "env_http_headers", Shape: &schema.Shape{Kind: schema.Dict, Names: headerName, Of: filledText}, Doc: "headers from variables"},
			{Name: "bearer_token_env_var", Shape: filledText, Doc: "variable that holds the token"},
			{Name: "startup_timeout_sec", Shape: amountShape, Doc: "of the handshake"},
			{Name: "startup_timeout_ms", Shape: amountShape, Doc: "of the handshake"},
			{Name: "tool_timeout_sec", Shape: amountShape, Doc: "of calls"},
			{Name: "enabled_tools", Shape: namesShape, Doc: "the only tools"},
			{Name: "disabled_tools", Shape: namesShape, Doc: "no such tools"},
			{Name: "scopes", Shape: scopesShape, Doc: "scopes to ask for"},
			{Name: "oauth_resource", Shape: filledText, Doc: "resource to ask for"},
		}},
		{[]Format{MCPServers}, known("trust", "description", "alwaysAllow", "autoApprove", "alwaysLoad", "authProviderType", "targetAudience",
			"targetServiceAccount", "extensionName", "extension", "gallery", "version", "id", "name", "displayName", "title",
			"icon", "iconPath", "source", "metadata", "tags", "remoteConfigured", "disabledReason", "sampling", "roots",
			"deferTools", "isDefaultServer", "filterMapping", "oidc", "scope", "tcp", "allowedEnvironmentVariables", "priority")},
		{[]Format{VSCode}, known("sandbox", "gallery", "version", "name", "description", "metadata")},
		{[]Format{Zed}, known("settings", "remote")},
		{[]Format{Codex}, known("name", "required", "supports_parallel_tool_calls", "default_tools_approval_mode", "experimental_environment", "tools")},
	} {
		if some.in == nil || slices.Contains(some.in, format) {
			s.Keys = append(s.Keys, some.keys...)
		}
	}
	return s
}

// oauthShape is a client's registration at an authorization server. Endpoints are not read from it: they are
// discovered.
func oauthShape() *schema.Shape {
	return with([]schema.Key{
		{Name: "clientId", Shape: filledText, Doc: "Claude Code, Gemini CLI, VS Code"},
		{Name: "client_id", Shape: filledText, Doc: "Codex, Zed"},
		{Name: "CLIENT_ID", Shape: filledText, Doc: "Cursor"},
		{Name: "clientSecret", Shape: filledText, Doc: "Gemini CLI"},
		{Name: "client_secret", Shape: filledText, Doc: "Zed"},
		{Name: "CLIENT_SECRET", Shape: filledText, Doc: "Cursor"},
		{Name: "scopes", Shape: scopesShape, Doc: "list, or words in one text"},
		{Name: "callbackPort", Shape: countShape, Doc: "Claude Code"},
	}, "enabled", "authServerMetadataUrl", "authorizationUrl", "tokenUrl", "redirectUri", "tokenParamName", "issuer", "audiences", "registrationUrl", "xaa")
}

// vscodeInput is an entry of VS Code's inputs.
func vscodeInput() *schema.Shape {
	return with([]schema.Key{
		{Name: "id", Shape: &schema.Shape{Kind: schema.Text, Form: inputID}, Required: true, Doc: "name for ${input:ID}"},
		{Name: "type", Shape: &schema.Shape{Kind: schema.Word, Words: []string{"promptString", "pickString", "command"}}, Doc: "promptString, pickString or command"},
		{Name: "description", Shape: textShape, Doc: "what is shown"},
		{Name: "password", Shape: boolShape, Doc: "not shown"},
		{Name: "default", Shape: textShape, Doc: "value where no user is asked"},
		{Name: "options", Shape: anyShape, Doc: "values, or pairs of label and value"},
	}, "command", "args")
}
