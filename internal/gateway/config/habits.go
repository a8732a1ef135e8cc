package config

import "github.com/outlive-mcp/outlive/internal/files/fileerror"

// habits maps words that people know from other programs to those used here.
var habits = map[string]string{
	"environment": "env", "arguments": "args", "argv": "args", "cmd": "command", "exec": "command", "program": "command",
	"workdir": "cwd", "workingdir": "cwd", "workingdirectory": "cwd", "dir": "cwd", "directory": "cwd",
	"endpoint": "url", "uri": "url", "httpurl": "url", "serverurl": "url", "mcpservers": "servers", "backends": "servers",
	"includetools": "allow", "enabledtools": "allow", "excludetools": "deny", "disabledtools": "deny",
	"timeout": "call_timeout", "enabled": "disabled", "port": "listen", "address": "listen", "token": "bearer",
	"httpheaders": "headers", "alias": "rename",
}

// suggest returns the known word that was probably meant, or "".
func suggest(word string, known []string) string { return fileerror.Suggest(word, known, habits) }
