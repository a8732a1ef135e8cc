package config

import "github.com/outlive-mcp/outlive/internal/files/fileerror"

// habits are what people write who come from other programs.
var habits = map[string]string{
	"environment": "env", "arguments": "args", "argv": "args", "cmd": "command", "exec": "command", "program": "command",
	"workdir": "cwd", "workingdir": "cwd", "workingdirectory": "cwd", "dir": "cwd", "directory": "cwd",
	"endpoint": "url", "uri": "url", "httpurl": "url", "serverurl": "url", "mcpservers": "servers", "backends": "servers",
	"includetools": "allow", "enabledtools": "allow", "excludetools": "deny", "disabledtools": "deny",
	"timeout": "call_timeout", "enabled": "disabled", "port": "listen", "address": "listen", "token": "bearer",
	"httpheaders": "headers", "alias": "rename",
}

// suggest finds the word that was probably meant, or gives "".
func suggest(word string, known []string) string { return fileerror.Suggest(word, known, habits) }

// didYouMean is the hint for a word that is not known.
func didYouMean(word string, known []string) string { return fileerror.DidYouMean(word, known, habits) }
