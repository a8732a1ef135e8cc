package clients

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// System describes the machine, as far as places depend on it.
type System struct {
	OS   string // "linux", "darwin" or "windows", as in runtime.GOOS
	Home string // the user's home directory
	// Env returns the value of an environment variable, "" when there is none.
	Env func(name string) string
}

// Place is where a configuration file of a client may be.
type Place struct {
	Client *Client
	// Path is the file; if Pattern, a pattern of [filepath.Match] for several.
	Path    string
	Pattern bool
	// Project says that the file belongs to a project and is often shared with others.
	Project bool
}

// Client is one AI client.
type Client struct {
	Name  string // as used with --client: "claude-code"
	Title string // its product name: "Claude Code"

	format tree.Format // JSON may have comments and trailing commas if the client accepts them
	// objects are the paths of the objects that hold servers by name; "*" matches any one member.
	objects [][]string
	syntax  syntax
	listed  bool                  // the command is one list, with its arguments
	user    func(System) []string // user files; those with a "*" are patterns
	project []string              // relative to a project's directory, with forward slashes
}

// all is the table of clients. Sources, as of November 2026: the clients' documentation, for Zed (crates/paths) and
// Gemini CLI (core/config/storage.ts) their code. Not verified on a machine: the profiles of VS Code, Windsurf's
// "next" channel, Crush, and ~/.claude/.claude.json without CLAUDE_CONFIG_DIR, which only issue reports mention. A place
// without a file costs nothing.
var all = []*Client{
	{Name: "claude-code", Title: "Claude Code", syntax: shellSyntax,
		objects: [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}},
		user: func(s System) []string {
			if dir := s.Env("CLAUDE_CONFIG_DIR"); dir != "" {
				return []string{s.join(dir, ".claude.json")}
			}
			return []string{s.join(s.Home, ".claude.json"), s.join(s.Home, ".claude", ".claude.json")}
		},
		project: []string{".mcp.json"}},
	{Name: "claude-desktop", Title: "Claude Desktop", syntax: noSyntax,
		objects: [][]string{{"mcpServers"}},
		user: func(s System) []string {
			files := []string{s.join(s.appData(), "Claude", "claude_desktop_config.json")}
			if s.OS == "windows" { // the packaged app (MSIX, since 2026) has a roaming directory of its own
				files = append(files, s.join(s.localAppData(), "Packages", "Claude_*", "LocalCache", "Roaming", "Claude", "claude_desktop_config.json"))
			}
			return files
		}},
	{Name: "vscode", Title: "VS Code", syntax: editorSyntax,
		objects: [][]string{{"servers"}},
		user: func(s System) []string {
			var files []string
			for _, app := range []string{"Code", "Code - Insiders"} {
				user := s.join(s.appData(), app, "User")
				files = append(files, s.join(user, "mcp.json"), s.join(user, "profiles", "*", "mcp.json"))
			}
			return files
		},
		project: []string{".vscode/mcp.json"}},
	{Name: "cursor", Title: "Cursor", syntax: editorSyntax,
		objects: [][]string{{"mcpServers"}},
		user:    func(s System) []string { return []string{s.join(s.Home, ".cursor", "mcp.json")} },
		project: []string{".cursor/mcp.json"}},
	{Name: "codex", Title: "Codex", format: tree.TOML, syntax: noSyntax,
		objects: [][]string{{"mcp_servers"}},
		user:    func(s System) []string { return []string{s.join(s.orHome("CODEX_HOME", ".codex"), "config.toml")} },
		project: []string{".codex/config.toml"}},
	{Name: "gemini", Title: "Gemini CLI", syntax: dollarSyntax,
		objects: [][]string{{"mcpServers"}},
		user: func(s System) []string {
			return []string{s.join(s.orHome("GEMINI_CLI_HOME"), ".gemini", "settings.json")}
		},
		project: []string{".gemini/settings.json"}},
	{Name: "copilot", Title: "Copilot CLI", syntax: shellSyntax,
		objects: [][]string{{"mcpServers"}},
		user: func(s System) []string {
			return []string{s.join(s.orHome("COPILOT_HOME", ".copilot"), "mcp-config.json")}
		}},
	{Name: "qwen", Title: "Qwen Code", syntax: dollarSyntax,
		objects: [][]string{{"mcpServers"}},
		user:    func(s System) []string { return []string{s.join(s.Home, ".qwen", "settings.json")} },
		project: []string{".qwen/settings.json"}},
	{Name: "opencode", Title: "OpenCode", syntax: colonSyntax, listed: true,
		objects: [][]string{{"mcp"}},
		user: func(s System) []string {
			dir := s.join(s.dotConfig(), "opencode")
			files := []string{s.join(dir, "opencode.json"), s.join(dir, "opencode.jsonc")}
			if file := s.Env("OPENCODE_CONFIG"); file != "" {
				files = append(files, file)
			}
			return files
		},
		project: []string{"opencode.json", "opencode.jsonc"}},
	{Name: "crush", Title: "Crush", syntax: commandSyntax,
		objects: [][]string{{"mcp"}},
		user: func(s System) []string {
			if s.OS == "windows" {
				return []string{s.join(s.localAppData(), "crush", "crush.json")}
			}
			return []string{s.join(s.dotConfig(), "crush", "crush.json")}
		},
		project: []string{"crush.json", ".crush.json"}},
	{Name: "windsurf", Title: "Windsurf", syntax: editorSyntax,
		objects: [][]string{{"mcpServers"}},
		user: func(s System) []string { // the editor, its next channel, and the plugin for other editors
			dir := s.join(s.Home, ".codeium")
			return []string{s.join(dir, "windsurf", "mcp_config.json"), s.join(dir, "windsurf-next", "mcp_config.json"), s.join(dir, "mcp_config.json")}
		}},
	{Name: "zed", Title: "Zed", syntax: noSyntax,
		objects: [][]string{{"context_servers"}},
		user: func(s System) []string {
			switch {
			case s.OS == "windows":
				return []string{s.join(s.appData(), "Zed", "settings.json")}
			case s.OS == "linux" && s.Env("FLATPAK_XDG_CONFIG_HOME") != "":
				return []string{s.join(s.Env("FLATPAK_XDG_CONFIG_HOME"), "zed", "settings.json")}
			case s.OS == "linux":
				return []string{s.join(s.appData(), "zed", "settings.json")}
			}
			return []string{s.join(s.Home, ".config", "zed", "settings.json")}
		},
		project: []string{".zed/settings.json"}},
}

// All returns the clients in display order.
func All() []*Client { return slices.Clone(all) }

// Named returns the client with this name; nil if there is none.
func Named(name string) *Client {
	if i := slices.IndexFunc(all, func(c *Client) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Places returns where the client's files may be on s: those of the user, then those of the project in directory
// project. If project is "", only the user's.
func (c *Client) Places(s System, project string) []Place {
	var places []Place
	for _, path := range c.user(s) {
		places = append(places, Place{Client: c, Path: path, Pattern: strings.Contains(path, "*")})
	}
	if project == "" {
		return places
	}
	for _, rel := range c.project {
		places = append(places, Place{Client: c, Path: s.join(append([]string{project}, strings.Split(rel, "/")...)...), Project: true})
	}
	return places
}

// join joins path elements in the style of s, which may be another system than this one.
func (s System) join(names ...string) string {
	if s.OS == "windows" {
		for i, name := range names {
			names[i] = strings.TrimRight(strings.ReplaceAll(name, "/", `\`), `\`)
		}
		return strings.Join(names, `\`)
	}
	return filepath.ToSlash(filepath.Join(names...))
}

// appData is the directory for the applications' settings of the user.
func (s System) appData() string {
	switch s.OS {
	case "windows":
		return s.orHome("APPDATA", "AppData", "Roaming")
	case "darwin":
		return s.join(s.Home, "Library", "Application Support")
	}
	return s.dotConfig()
}

// dotConfig is where programs have their settings that follow XDG on every system.
func (s System) dotConfig() string { return s.orHome("XDG_CONFIG_HOME", ".config") }

func (s System) localAppData() string { return s.orHome("LOCALAPPDATA", "AppData", "Local") }

// orHome is the directory that an environment variable names, or one below the user's home.
func (s System) orHome(variable string, names ...string) string {
	return cmp.Or(s.Env(variable), s.join(append([]string{s.Home}, names...)...))
}

// maxFile is the maximum size of a configuration file that is read, in bytes. Those of most clients have a few
// kilobytes, Claude Code's a few megabytes of history.
const maxFile = 64 << 20

// File is a configuration file that was found.
type File struct {
	Place
	Text []byte // as it was read
	// Err says why the file cannot be read; nil if it can. Text is empty then.
	Err error
}

// Find reads the existing files at the places, in order. A file at two places is read only for the first.
func Find(places []Place) []File {
	var files []File
	seen := map[string]bool{}
	for _, p := range places {
		paths := []string{p.Path}
		if p.Pattern {
			paths, _ = filepath.Glob(p.Path) // it fails only for an invalid pattern
		}
		for _, path := range paths {
			if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() || seen[path] {
				continue
			}
			seen[path] = true
			f := File{Place: p}
			f.Path, f.Pattern = path, false
			if f.Text, f.Err = atomicfile.Read(path, maxFile); f.Err != nil {
				f.Err = fmt.Errorf("read configuration: %w", f.Err)
			}
			files = append(files, f)
		}
	}
	return files
}
