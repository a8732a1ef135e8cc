package clients

import (
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// syntax is a client's syntax for variables in values.
type syntax uint8

const (
	noSyntax      syntax = iota // there are no variables
	shellSyntax                 // ${VAR}, ${VAR:-default}: Claude Code, Copilot CLI
	dollarSyntax                // $VAR, ${VAR}: Gemini CLI, Qwen Code
	commandSyntax               // the same, and $(COMMAND): Crush
	colonSyntax                 // {env:VAR}, {file:PATH}: OpenCode
	editorSyntax                // ${env:VAR}, ${userHome}, ${workspaceFolder}, ${input:id}: VS Code, Cursor, Windsurf
)

var (
	braced = lazyregexp.New(`\$\{([^}]*)\}`)
	bare   = lazyregexp.New(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)
	shells = lazyregexp.New(`\$\([^)]*\)`)
	colon  = lazyregexp.New(`\{(env|file):([^}]*)\}`)
)

// Expand returns the server as the client starts it: with variables replaced by their values. An error names what
// only the client knows, such as the user's answer to a question. project is the directory of the open project; "" if
// there is none.
func (c *Client) Expand(s Server, sys System, project string) (Server, error) {
	var unknown []string
	expand := func(text string) string {
		return c.syntax.replace(text, func(word, variable, otherwise string) string {
			switch {
			case variable != "":
				if v := sys.Env(variable); v != "" || otherwise == "" {
					return v
				}
				return otherwise
			case word == "${userHome}":
				return sys.Home
			case (word == "${workspaceFolder}" || word == "${cwd}") && project != "":
				return project
			case word == "${/}" || word == "${pathSeparator}":
				return strings.Trim(sys.join("a", "b"), "ab")
			}
			unknown = append(unknown, word)
			return word
		})
	}
	out := s
	out.Command, out.Dir, out.URL = expand(s.Command), expand(s.Dir), expand(s.URL)
	out.Args = nil
	for _, arg := range s.Args {
		out.Args = append(out.Args, expand(arg))
	}
	out.Env = map[string]string{}
	for name, value := range s.Env {
		out.Env[name] = expand(value)
	}
	unknown = append(unknown, s.Needs...)
	if len(unknown) > 0 {
		return s, fmt.Errorf("only %s knows %s", c.Title, strings.Join(unknown, ", "))
	}
	return out, nil
}

// replace calls with for each variable of text. variable is the environment variable it refers to, "" for anything
// else; otherwise is its default.
func (s syntax) replace(text string, with func(word, variable, otherwise string) string) string {
	switch s {
	case shellSyntax:
		return braced.ReplaceAllStringFunc(text, func(word string) string {
			name, otherwise, _ := strings.Cut(word[2:len(word)-1], ":-")
			return with(word, name, otherwise)
		})
	case commandSyntax:
		return dollarSyntax.replace(shells.ReplaceAllStringFunc(text, func(word string) string { return with(word, "", "") }), with)
	case dollarSyntax:
		return bare.ReplaceAllStringFunc(text, func(word string) string {
			return with(word, strings.Trim(word, "${}"), "")
		})
	case colonSyntax:
		return colon.ReplaceAllStringFunc(text, func(word string) string { return with(word, behindEnv(word[1:len(word)-1]), "") })
	case editorSyntax:
		return braced.ReplaceAllStringFunc(text, func(word string) string { return with(word, behindEnv(word[2:len(word)-1]), "") })
	}
	return text
}

// behindEnv is NAME of env:NAME; "" for anything else.
func behindEnv(text string) string {
	if name, is := strings.CutPrefix(text, "env:"); is {
		return name
	}
	return ""
}
