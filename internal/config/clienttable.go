package config

// The tables of the clients' files, made when such a file is read. Keys without a doc are known and mean nothing here:
// approvals, icons, the client's own bookkeeping. What is not in a table is told as a warning, because it may be a misspelt
// key of the table.

// known makes keys that mean nothing here.
func known(names ...string) []key {
	keys := make([]key, len(names))
	for i, n := range names {
		keys[i] = key{name: n, shape: &shape{kind: anything}}
	}
	return keys
}

func with(keys []key, more ...[]key) *shape {
	s := &shape{kind: anObject, keys: keys}
	for _, m := range more {
		s.keys = append(s.keys, m...)
	}
	return s
}

var (
	amountShape = &shape{kind: anAmount}
	namesShape  = &shape{kind: aListOrText, of: filledText}
	envOfClient = &shape{kind: aDict, names: envName, of: &shape{kind: aText, form: noNUL, loose: true}}
)

// processKeys are what every client has for a server that it starts.
var processKeys = []key{
	{name: "command", shape: filledText, doc: "program"},
	{name: "args", shape: argsShape, doc: "arguments"},
	{name: "env", shape: envOfClient, doc: "variables"},
	{name: "cwd", shape: pathShape, doc: "folder"},
}

// remoteKeys are what most have for a server elsewhere.
var remoteKeys = []key{
	{name: "url", shape: &shape{kind: aText, form: urlForm}, doc: "URL"},
	{name: "headers", shape: headersShape, doc: "headers"},
}

// mcpServersShape is one entry of mcpServers, with the keys of all clients that have it: they copy from each other, and
// users from one to the next.
func mcpServersShape() *shape {
	return with(processKeys, remoteKeys, []key{
		{name: "httpUrl", shape: &shape{kind: aText, form: urlForm}, doc: "Gemini CLI: URL of Streamable HTTP"},
		{name: "serverUrl", shape: &shape{kind: aText, form: urlForm}, doc: "Windsurf: URL"},
		{name: "type", shape: filledText, doc: "transport"},
		{name: "transport", shape: filledText, doc: "transport"},
		{name: "transportType", shape: filledText, doc: "Cline: transport"},
		{name: "disabled", shape: boolShape, doc: "left out"},
		{name: "enabled", shape: boolShape, doc: "false: left out"},
		{name: "includeTools", shape: namesShape, doc: "Gemini CLI: the only tools"},
		{name: "enabledTools", shape: namesShape, doc: "the only tools"},
		{name: "tools", shape: namesShape, doc: "Copilot CLI: the only tools; *: all"},
		{name: "excludeTools", shape: namesShape, doc: "Gemini CLI: no such tools"},
		{name: "disabledTools", shape: namesShape, doc: "Windsurf, Roo Code: no such tools"},
		{name: "envFile", shape: pathShape, doc: "Cursor: file of variables"},
		{name: "timeout", shape: amountShape, doc: "of calls: milliseconds (Gemini CLI, Claude Code) or seconds (Cline, Roo Code)"},
		{name: "watchPaths", shape: namesShape, doc: "Roo Code: files whose change restarts the server"},
		{name: "oauth", shape: &shape{kind: anything}, doc: "client id and scopes (Claude Code, Gemini CLI)"},
		{name: "auth", shape: &shape{kind: anything}, doc: "Cursor: client id and scopes"},
		{name: "headersHelper", shape: filledText, doc: "Claude Code: a command that prints headers; not run here"},
	}, known("trust", "description", "alwaysAllow", "autoApprove", "alwaysLoad", "authProviderType", "targetAudience",
		"targetServiceAccount", "extensionName", "extension", "gallery", "version", "id", "name", "displayName", "title",
		"icon", "iconPath", "source", "metadata", "tags", "remoteConfigured", "disabledReason", "sampling", "roots",
		"deferTools", "isDefaultServer", "filterMapping", "oidc", "scope", "tcp", "allowedEnvironmentVariables", "priority"))
}

// vscodeShape is one entry of servers in VS Code's mcp.json.
func vscodeShape() *shape {
	return with(processKeys, remoteKeys, []key{
		{name: "type", shape: filledText, doc: "transport"},
		{name: "envFile", shape: pathShape, doc: "file of variables"},
		{name: "sandboxEnabled", shape: boolShape, doc: "not done here, which is told"},
		{name: "dev", shape: with([]key{{name: "watch", shape: namesShape, doc: "globs whose change restarts the server"}}, known("debug")), doc: "development mode"},
		{name: "oauth", shape: &shape{kind: anything}, doc: "client id"},
		{name: "disabled", shape: boolShape, doc: "left out"},
		{name: "enabled", shape: boolShape, doc: "false: left out"},
	}, known("sandbox", "gallery", "version", "name", "description", "metadata"))
}

// zedShape is one entry of Zed's context_servers.
func zedShape() *shape {
	return with(processKeys, remoteKeys, []key{
		{name: "source", shape: filledText, doc: "custom, or extension"},
		{name: "enabled", shape: boolShape, doc: "false: left out"},
		{name: "timeout", shape: amountShape, doc: "of calls, in seconds"},
		{name: "oauth", shape: &shape{kind: anything}, doc: "client id"},
	}, known("settings", "remote"))
}

// codexShape is one table of Codex' mcp_servers.
func codexShape() *shape {
	return with(processKeys, []key{
		{name: "url", shape: &shape{kind: aText, form: urlForm}, doc: "URL"},
		{name: "env_vars", shape: &shape{kind: anything}, doc: "variables that are passed on"},
		{name: "http_headers", shape: headersShape, doc: "headers"},
		{name: "env_http_headers", shape: &shape{kind: aDict, names: headerName, of: filledText}, doc: "headers from variables"},
		{name: "bearer_token_env_var", shape: filledText, doc: "variable that holds the token"},
		{name: "enabled", shape: boolShape, doc: "false: left out"},
		{name: "startup_timeout_sec", shape: amountShape, doc: "of the handshake"},
		{name: "startup_timeout_ms", shape: amountShape, doc: "of the handshake"},
		{name: "tool_timeout_sec", shape: amountShape, doc: "of calls"},
		{name: "enabled_tools", shape: namesShape, doc: "the only tools"},
		{name: "disabled_tools", shape: namesShape, doc: "no such tools"},
		{name: "scopes", shape: scopesShape, doc: "scopes to ask for"},
		{name: "oauth", shape: &shape{kind: anything}, doc: "client id"},
		{name: "oauth_resource", shape: filledText, doc: "resource to ask for"},
	}, known("name", "required", "supports_parallel_tool_calls", "default_tools_approval_mode", "experimental_environment", "tools"))
}

// oauthShape is what clients know of themselves at an authorization server. Endpoints are found out here.
func oauthShape() *shape {
	return with([]key{
		{name: "clientId", shape: filledText, doc: "Claude Code, Gemini CLI, VS Code"},
		{name: "client_id", shape: filledText, doc: "Codex, Zed"},
		{name: "CLIENT_ID", shape: filledText, doc: "Cursor"},
		{name: "clientSecret", shape: filledText, doc: "Gemini CLI"},
		{name: "client_secret", shape: filledText, doc: "Zed"},
		{name: "CLIENT_SECRET", shape: filledText, doc: "Cursor"},
		{name: "scopes", shape: scopesShape, doc: "list, or words in one text"},
		{name: "callbackPort", shape: countShape, doc: "Claude Code"},
	}, known("enabled", "authServerMetadataUrl", "authorizationUrl", "tokenUrl", "redirectUri", "tokenParamName", "issuer", "audiences", "registrationUrl", "xaa"))
}

// vscodeInput is an entry of VS Code's inputs.
func vscodeInput() *shape {
	return with([]key{
		{name: "id", shape: &shape{kind: aText, form: inputID}, required: true, doc: "name for ${input:ID}"},
		{name: "type", shape: &shape{kind: aWord, words: []string{"promptString", "pickString", "command"}}, doc: "promptString, pickString or command"},
		{name: "description", shape: textShape, doc: "what is shown"},
		{name: "password", shape: boolShape, doc: "not shown"},
		{name: "default", shape: textShape, doc: "value if nobody is asked"},
		{name: "options", shape: &shape{kind: anything}, doc: "values, or pairs of label and value"},
	}, known("command", "args"))
}
