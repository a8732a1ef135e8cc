package config

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Format is the recognised format of a file.
type Format string

// The formats.
const (
	Unknown Format = ""
	Outlive Format = "outlive" // outlive.yaml
	// MCPServers is the mcpServers object that most clients have: Claude Code and Desktop, Cursor, Gemini CLI, Windsurf,
	// Cline, Roo Code, Copilot CLI and others.
	MCPServers Format = "mcpServers"
	VSCode     Format = "vscode" // .vscode/mcp.json, or "mcp" in settings.json
	Codex      Format = "codex"  // config.toml
	Zed        Format = "zed"    // context_servers in settings.json
)

var tomlLine = lazyregexp.New(`^(\[\[?[A-Za-z0-9_."' -]+\]\]?|[A-Za-z0-9_."-]+\s*=.*)\s*(#.*)?$`)

// syntaxOf decides by the file name's extension or, if that says nothing, by the first line that is not a comment.
func syntaxOf(s *fileerror.Source) tree.Format {
	switch strings.ToLower(filepath.Ext(s.Name)) {
	case ".yaml", ".yml":
		return tree.YAML
	case ".json", ".jsonc", ".json5":
		return tree.JSON
	case ".toml":
		return tree.TOML
	}
	for line := range bytes.Lines(s.Text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
		case line[0] == '{' || bytes.HasPrefix(line, []byte("//")) || bytes.HasPrefix(line, []byte("/*")):
			return tree.JSON
		case tomlLine.Match(line):
			return tree.TOML
		default:
			return tree.YAML
		}
	}
	return tree.YAML
}

// ownKeys are the members that only outlive.yaml has at the top. VS Code's file has servers and inputs, too.
func ownKeys(root *tree.Node) []*tree.Node {
	shape := rootShape(nil)
	return slices.DeleteFunc(slices.Clone(root.Members()), func(f *tree.Node) bool {
		return f.Key == "servers" || f.Key == "inputs" || shape.Key(f.Key) == nil
	})
}

// recognise decides by the top-level keys. where is the object that holds the servers.
func recognise(s tree.Format, root *tree.Node) (f Format, where *tree.Node) {
	if s == tree.YAML && root.Kind == tree.Null {
		return Outlive, nil // only comments, or ---
	}
	if root.Kind != tree.Object {
		return Unknown, nil
	}
	own := len(ownKeys(root)) > 0
	// Who may do what would have no effect in a client's YAML, and is a mistake there. A client's JSON may have keys of the same name.
	access := s == tree.YAML && root.Given("auth", "views", "local_users")
	switch {
	case root.Get("mcpServers") != nil && !access:
		return MCPServers, root.Get("mcpServers")
	case s == tree.TOML && root.Get("mcp_servers") != nil:
		return Codex, root.Get("mcp_servers")
	case root.Get("context_servers") != nil:
		return Zed, root.Get("context_servers")
	case root.Get("mcp").Get("servers") != nil:
		return VSCode, root.Get("mcp").Get("servers")
	case s == tree.JSON && root.Get("servers") != nil && !own:
		return VSCode, root.Get("servers")
	case root.Get("servers") != nil || own || s == tree.YAML:
		return Outlive, nil
	}
	return Unknown, nil
}

// serverKeys are the formats' keys for the object with the servers.
var serverKeys = []string{"servers", "mcpServers", "mcp_servers", "context_servers"}

// refuse reports that the file is no configuration, and which key was perhaps meant.
func (r *reader) refuse(root *tree.Node) {
	if root.Kind != tree.Object {
		r.Problem(root.Pos, "the file is "+root.Is(), "want outlive.yaml, or the file of an AI client that names its MCP servers")
		return
	}
	for _, f := range root.Members() {
		if k := suggest(f.Key, serverKeys); k != "" && f.Kind == tree.Object {
			r.Problem(f.KeyPos, "unknown key \""+fileerror.Shortened(f.Key)+"\", and no servers", "did you mean \""+k+"\"?")
			return
		}
	}
	r.Problem(root.Pos, "the file names no MCP servers", "want one of the keys "+fileerror.Alternatives(serverKeys))
}
