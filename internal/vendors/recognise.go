package vendors

import (
	"path"
	"slices"
	"strings"
)

// program is how a CLI is found among processes.
type program struct {
	kind     Kind
	names    []string // of its executable or script
	packages []string // of the registry, as npx and its kin are told
	paths    []string // parts of the path of its script or executable, with slashes
	// other are first words with which the program does something else than a session: servers, daemons, management.
	other []string
	// takes are options whose value is the next word, as far as they stand before a first word.
	takes []string
	// flags are options that end at once or begin something else than a session.
	flags []string
	// headlessFlags and headlessWords make a session end with its prompt: it has no terminal to go on at.
	headlessFlags, headlessWords []string
	// goOn are first words that go on with an old session.
	goOn []string
}

var programs = []program{
	{
		kind: Claude, names: []string{"claude"}, packages: []string{"@anthropic-ai/claude-code"}, paths: []string{"/@anthropic-ai/claude-code/", "/claude/versions/"},
		other:         []string{"mcp", "config", "doctor", "update", "upgrade", "install", "setup-token", "plugin", "plugins", "migrate-installer", "agents", "daemon", "auth", "auto-mode", "logs", "attach", "stop", "kill", "rm", "respawn", "purge", "import", "gateway", "ultrareview"},
		takes:         []string{"--model", "--settings", "--session-id", "--mcp-config", "--permission-mode", "--output-format", "--input-format", "--append-system-prompt", "--system-prompt", "--max-turns", "--fallback-model", "--agent", "--agents", "--setting-sources", "--debug-file", "--name", "-n", "--max-budget-usd", "--effort"},
		flags:         []string{"--version", "-v", "--help", "-h", "--claude-in-chrome-mcp", "--chrome-native-host", "--bg", "--background", "--bg-spare", "--bg-pty-host", "--daemon-worker", "--ripgrep"},
		headlessFlags: []string{"-p", "--print"},
	},
	{
		kind: Codex, names: []string{"codex"}, packages: []string{"@openai/codex"}, paths: []string{"/@openai/codex", "/codex-cli/"},
		other:         []string{"mcp", "mcp-server", "app-server", "exec-server", "login", "logout", "completion", "debug", "sandbox", "apply", "a", "cloud", "responses-api-proxy", "stdio-to-uds", "features", "execpolicy", "queue", "migrate-rollouts", "migrate-nfs-db", "archive", "unarchive", "delete", "doctor", "help", "agents", "update", "plugin", "app", "remote-control"},
		takes:         []string{"-c", "--config", "-m", "--model", "-p", "--profile", "-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir", "-i", "--image", "--enable", "--disable", "--local-provider"},
		flags:         []string{"--version", "-V", "--help", "-h"},
		headlessWords: []string{"exec", "e", "review"},
		goOn:          []string{"resume", "fork"},
	},
	{
		kind: Gemini, names: []string{"gemini"}, packages: []string{"@google/gemini-cli"}, paths: []string{"/@google/gemini-cli/", "/gemini-cli/bundle/"},
		other:         []string{"mcp", "extensions", "extension", "skills", "skill", "hooks", "hook"},
		takes:         []string{"-m", "--model", "--approval-mode", "--output-format", "-o", "--include-directories", "--resume", "-r"},
		flags:         []string{"--version", "-v", "--help", "-h", "--list-sessions", "--list-extensions", "-l", "--delete-session"},
		headlessFlags: []string{"-p", "--prompt"},
	},
	{
		kind: OpenCode, names: []string{"opencode"}, packages: []string{"opencode-ai"}, paths: []string{"/opencode-ai/", "/opencode-linux-", "/opencode-darwin-", "/opencode-windows-", "/.opencode/bin/"},
		other:         []string{"serve", "web", "acp", "auth", "providers", "agent", "upgrade", "uninstall", "models", "stats", "export", "import", "github", "pr", "session", "db", "mcp", "debug", "completion", "plugin"},
		takes:         []string{"-m", "--model", "--agent", "--prompt", "-s", "--session", "--port", "--hostname", "--log-level"},
		flags:         []string{"--version", "-v", "--help", "-h"},
		headlessWords: []string{"run"},
	},
}

// interpreters run a script that is their first word; those with a list of first words only behind one of them.
var interpreters = map[string][]string{
	"node": nil, "nodejs": nil, "bun": nil, "deno": {"run"}, "tsx": nil,
}

// runners fetch a package and run it, some only behind a first word.
var runners = map[string][]string{
	"npx": nil, "bunx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx", "exec"}, "yarn": {"dlx", "exec"}, "bun": {"x"},
}

// Recognise tells whether a process is an agent CLI that runs a session, by its arguments and, where it has taken its
// own name away, by its executable ("": unknown). A package runner or a script's wrapper that waits for it is one too.
// Not one are a vendor's servers and daemons, its management commands, MCP servers and hooks that are named after it, and
// shells and editors that only mention it.
func Recognise(args []string, exe string) (Kind, bool) {
	p, rest := locate(args, exe)
	if p == nil {
		return "", false
	}
	return p.judge(rest)
}

// Headless reports whether a command is an agent CLI that works on its prompt and ends, such as claude -p or codex exec:
// its exit status says whether it was done.
func Headless(args []string) bool {
	p, rest := locate(args, "")
	if p == nil {
		return false
	}
	if _, session := p.judge(rest); !session {
		return false
	}
	word := false // whether the first one that is no option was seen
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		switch {
		case slices.Contains(p.headlessFlags, rest[i]):
			return true
		case !strings.HasPrefix(rest[i], "-"):
			if !word && slices.Contains(p.headlessWords, rest[i]) {
				return true
			}
			word = true
		case slices.Contains(p.takes, rest[i]):
			i++
		}
	}
	return false
}

// Prompted reports whether a command gives its CLI something to do at once, so that its session has to show itself soon: a prompt,
// or all that [Headless] says. Without one a CLI at a terminal waits for its first prompt, and some show no session until then.
func Prompted(args []string) bool {
	p, rest := locate(args, "")
	if p == nil {
		return false
	}
	var words []string
	named := 0 // words that say which session is gone on with
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == "--":
			words = append(words, rest[i+1:]...)
			i = len(rest)
		case !strings.HasPrefix(rest[i], "-"):
			words = append(words, rest[i])
		case rest[i] == "--last":
			named--
		case slices.Contains(p.takes, rest[i]):
			i++
		}
	}
	if len(words) > 0 && slices.Contains(p.goOn, words[0]) {
		named += 2 // the command and the session's id
	}
	return Headless(args) || len(words) > max(named, 0)
}

// locate finds the CLI that a command runs, and the words behind its name; nil: it runs none.
func locate(args []string, exe string) (p *program, rest []string) {
	if len(args) == 0 {
		return nil, nil
	}
	first := args[0]
	if first == "" {
		first = exe
	}
	// The name counts, not the executable: the CLIs start themselves under other names as a search tool or a sandbox.
	name, rest := base(first), args[1:]
	if p := programOf(name, first); p != nil {
		return p, rest
	}
	if p, behind, decided := packageRun(name, rest); decided {
		return p, behind
	}
	if only, known := interpreters[name]; known {
		return interpreted(only, rest)
	}
	return nil, nil
}

// base is the name of a program without its folder and what a system appends to it.
func base(arg string) string {
	name := path.Base(strings.ReplaceAll(arg, `\`, "/"))
	for _, end := range []string{".exe", ".cmd", ".ps1"} {
		if len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			return name[:len(name)-len(end)]
		}
	}
	return name
}

// programOf is the CLI that an executable or a script belongs to.
func programOf(name, full string) *program {
	full = strings.ReplaceAll(full, `\`, "/")
	for i := range programs {
		p := &programs[i]
		if slices.Contains(p.names, name) {
			return p
		}
		if !strings.Contains(full, " ") && slices.ContainsFunc(p.paths, func(part string) bool { return strings.Contains(full, part) }) {
			if p.main(name) {
				return p
			}
		}
	}
	return nil
}

// main says whether a file within a CLI's package is the CLI, and not a tool that it brings along, such as ripgrep.
func (p *program) main(name string) bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".js"), ".mjs"), ".cjs")
	if stem == "cli" || stem == "cli-wrapper" || stem == "index" || slices.Contains(p.names, stem) || strings.HasPrefix(stem, p.names[0]+"-") {
		return true
	}
	return p.kind == Claude && stem != "" && strings.Trim(stem, "0123456789.") == "" // claude/versions/2.1.330
}

// interpreted is the CLI that a script belongs to.
func interpreted(only, args []string) (*program, []string) {
	if len(only) > 0 {
		if len(args) == 0 || !slices.Contains(only, args[0]) {
			return nil, nil
		}
		args = args[1:]
	}
	for i, arg := range args {
		if slices.Contains(evaluates, arg) {
			return nil, nil
		}
		if strings.HasPrefix(arg, "-") || i > 0 && slices.Contains(loads, args[i-1]) {
			continue
		}
		if p := programOf(base(arg), arg); p != nil {
			return p, args[i+1:]
		}
		return nil, nil
	}
	return nil, nil
}

var (
	evaluates = []string{"-e", "--eval", "-p", "--print", "-"}            // options of an interpreter that run a text
	loads     = []string{"-r", "--require", "--import", "--loader", "-C"} // and those whose value is the next word
)

// packageRun is the CLI that a package runner was told to run; decided is false when name is none, or runs a script here.
func packageRun(name string, args []string) (p *program, rest []string, decided bool) {
	verbs, known := runners[name]
	if !known {
		return nil, nil, false
	}
	if verbs != nil {
		if len(args) == 0 || !slices.Contains(verbs, args[0]) {
			return nil, nil, name != "bun" // bun runs scripts as well
		}
		args = args[1:]
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") || i > 0 && (args[i-1] == "-p" || args[i-1] == "--package") {
			continue // what a package is taken from does not matter, the command in it does
		}
		return packageOf(arg), args[i+1:], true
	}
	return nil, nil, true
}

// packageOf is the CLI of a package, with or without a version, or of the command that it installs.
func packageOf(spec string) *program {
	name := spec
	if at := strings.LastIndex(spec, "@"); at > 0 {
		name = spec[:at]
	}
	for i := range programs {
		if slices.Contains(programs[i].packages, name) || slices.Contains(programs[i].names, name) {
			return &programs[i]
		}
	}
	return nil
}

// judge says by the words behind a CLI's name whether it runs a session.
func (p *program) judge(args []string) (Kind, bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			break
		}
		if !strings.HasPrefix(arg, "-") {
			if slices.Contains(p.other, arg) {
				return "", false
			}
			break
		}
		if slices.Contains(p.flags, arg) {
			return "", false
		}
		if slices.Contains(p.takes, arg) {
			i++
		}
	}
	return p.kind, true
}
