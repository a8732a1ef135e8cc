package clients

import (
	"path"
	"slices"
	"strings"
)

// Server is one server in a client's file.
type Server struct {
	// Scope is the path of the object that contains it: ["mcpServers"], or ["projects", "/src/shop", "mcpServers"].
	Scope []string
	Name  string

	Command string   // "" when the client does not start it
	Args    []string // as written: variables are not expanded
	Env     map[string]string
	Dir     string // its working directory; "" if not given
	URL     string // of a remote server

	Disabled bool // the client does not start it at present
	// Extension says that an extension of the client has the command, and the entry its settings only.
	Extension bool
	// Needs are keys of the entry that change what the server gets and that only the client can interpret, such as
	// envFile of VS Code.
	Needs []string
	// Odd says why the entry cannot be read as a server; "" if it can.
	Odd string
}

// Project is the directory of the project that the entry is for; "" if it is for none, or for the file's own.
func (s Server) Project() string {
	if len(s.Scope) == 3 && s.Scope[0] == "projects" {
		return s.Scope[1]
	}
	return ""
}

// Remote reports whether the server is reached over the network.
func (s Server) Remote() bool { return s.Command == "" && s.URL != "" }

// Argv returns the command line as the client starts it.
func (s Server) Argv() []string { return append([]string{s.Command}, s.Args...) }

// Gateway reports whether the entry starts outlive gateway.
func (s Server) Gateway() bool { return s.starts("gateway") }

// Wrapped reports whether the entry starts outlive run.
func (s Server) Wrapped() bool { return s.starts("run") }

func (s Server) starts(verb string) bool {
	argv := behindShell(s.Argv())
	return IsOutlive(argv[0]) && len(argv) > 1 && argv[1] == verb
}

// packageName is outlive's in the registries of npm and PyPI.
const packageName = "outlive-mcp"

// packaged reports whether the entry has npx, uvx or the like start outlive run or outlive gateway.
func (s Server) packaged() bool {
	for i, word := range s.Args {
		name, _, _ := strings.Cut(word, "@")
		name, _, _ = strings.Cut(name, "==")
		rest := s.Args[i+1:]
		if name == packageName && slices.ContainsFunc(rest[:min(len(rest), 2)], func(w string) bool { return w == "run" || w == "gateway" }) {
			return true // two: "uvx --from outlive-mcp outlive run"
		}
	}
	return false
}

// ByWrap reports whether the entry starts outlive run in the form that [Client.Wrap] writes, in every version: with
// --name and the server's name before everything else. label converts the name, as that of [Options] does.
func (s Server) ByWrap(label func(name string) string) bool {
	return IsOutlive(s.Command) && len(s.Args) > 4 && slices.Equal(s.Args[:3], []string{"run", "--name", label(s.Name)}) && slices.Contains(s.Args, "--")
}

// Inner returns the command line that outlive starts if the entry is wrapped, otherwise the entry's own. ok is false
// if it is wrapped without a "--", because then only outlive can tell where the command begins.
func (s Server) Inner() (argv []string, ok bool) {
	argv = s.Argv()
	if !s.Wrapped() {
		return argv, true
	}
	if i := slices.Index(argv, "--"); i > 0 && i+1 < len(argv) {
		return argv[i+1:], true
	}
	return argv, false
}

// behindShell returns the command line without cmd /c, which clients on Windows need for npx and similar programs.
func behindShell(argv []string) []string {
	if len(argv) > 2 && strings.EqualFold(baseName(argv[0]), "cmd") && strings.EqualFold(argv[1], "/c") {
		return argv[2:]
	}
	return argv
}

// IsOutlive reports whether a command is outlive, by its name without directory and .exe.
func IsOutlive(command string) bool { return strings.EqualFold(baseName(command), "outlive") }

// baseName is the name of a program without directory and .exe, in the path syntax of any system.
func baseName(command string) string {
	name := path.Base(strings.ReplaceAll(command, `\`, "/"))
	if ext := path.Ext(name); strings.EqualFold(ext, ".exe") {
		name = name[:len(name)-len(ext)]
	}
	return name
}
