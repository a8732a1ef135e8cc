package agentcli

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// program says how a CLI's processes are recognised.
type program struct {
	names    []string // of its executable or script
	packages []string // in the package registry, as used with npx and similar runners
	paths    []string // parts of the path of its script or executable, with slashes
	// other are first words for anything but a session: servers, daemons, management.
	other []string
	// takes are options before the first word whose value is the next argument.
	takes []string
	// flags are options that end at once, or start anything but a session.
	flags []string
	// headlessFlags and headlessWords make a session end with its prompt, without a terminal.
	headlessFlags, headlessWords []string
	// piped says that without a terminal its sessions end with their prompt, too.
	piped bool
	// promptOptions give a session at a terminal its prompt. None: its words do.
	promptOptions []string
	// streamOption makes one take prompts from its input as long as that is open, with the value stream-json. "": none
	// does.
	streamOption string
	// versioned says that its executable may be named after its version.
	versioned bool
	// goOn are first words that continue an old session.
	goOn []string
	// once are options that a command can be started with only once: what they name must not be there yet.
	once []string
}

// interpreters run a script that is their first word, or, where words are listed, that follows one of these.
var interpreters = map[string][]string{
	"node": nil, "nodejs": nil, "bun": nil, "deno": {"run"}, "tsx": nil,
}

// runners fetch a package and run it, some only after one of the listed words.
var runners = map[string][]string{
	"npx": nil, "bunx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx", "exec"}, "yarn": {"dlx", "exec"}, "bun": {"x"},
}

// Recognise decides whether a process is an agent CLI that runs a session, by its arguments. Package runners and scripts
// that wait for the CLI count, too. Excluded are a vendor's servers and daemons, its management commands, MCP servers and
// hooks that are named after it, and shells and editors that only mention it.
func Recognise(args []string) (Kind, bool) {
	p, rest := locate(args)
	if p == nil || !p.runs(rest) {
		return "", false
	}
	return p.Kind, true
}

// Headless reports whether a command is an agent CLI that works on its prompt and ends, such as claude -p or codex
// exec: its exit status then says whether it succeeded. terminal says whether it has one: without, some always do so.
func Headless(args []string, terminal bool) bool {
	p, rest := locate(args)
	if p == nil || !p.runs(rest) {
		return false
	}
	if p.piped && !terminal {
		return true
	}
	words := 0
	for arg, isOption := range p.parts(rest) {
		switch {
		case isOption && slices.Contains(p.headlessFlags, arg), !isOption && words == 0 && slices.Contains(p.headlessWords, arg):
			return true
		case !isOption:
			words++
		}
	}
	return false
}

// Streamed reports whether a command takes prompts from a stream on its input: it does not end with its turn.
func Streamed(args []string) bool {
	p, rest := locate(args)
	if p == nil || p.streamOption == "" {
		return false
	}
	for i, arg := range rest {
		switch {
		case arg == "--":
			return false
		case arg == p.streamOption+"=stream-json", arg == p.streamOption && i+1 < len(rest) && rest[i+1] == "stream-json":
			return true
		}
	}
	return false
}

// Prompted reports whether a command gives its CLI something to do at once, so that its session must appear soon: a
// prompt, or anything that [Headless] reports. Without one a CLI at a terminal waits for its first prompt, and some
// show no session until then.
func Prompted(args []string) bool {
	p, rest := locate(args)
	if p == nil {
		return false
	}
	if len(p.promptOptions) > 0 {
		return Headless(args, true) || slices.ContainsFunc(rest, func(arg string) bool {
			option, _, _ := strings.Cut(arg, "=")
			return slices.Contains(p.promptOptions, option)
		})
	}
	var words []string
	named := 0 // words that identify the session to continue
	for arg, isOption := range p.parts(rest) {
		switch {
		case !isOption:
			words = append(words, arg)
		case arg == "--last":
			named--
		}
	}
	if end := slices.Index(rest, "--"); end >= 0 {
		words = append(words, rest[end+1:]...)
	}
	if len(words) > 0 && slices.Contains(p.goOn, words[0]) {
		named += 2 // the command and the session's id
	}
	return Headless(args, true) || len(words) > max(named, 0)
}

// Once is the option with which a command can start its CLI only once. It names what must not be there yet, such as the id
// of a session. "": the command can be run again and again.
func Once(args []string) string {
	p, rest := locate(args)
	if p == nil {
		return ""
	}
	for arg := range p.parts(rest) {
		if option, _, _ := strings.Cut(arg, "="); slices.Contains(p.once, option) {
			return option
		}
	}
	return ""
}

// Unseen reports whether a command runs an agent CLI without a session that [Recognise] finds. That is so for sessions of a
// daemon (claude --bg) and for management (claude mcp).
func Unseen(args []string) bool {
	p, rest := locate(args)
	return p != nil && !p.runs(rest)
}

// locate finds the CLI that a command runs, and the arguments after its name; nil: it runs none.
func locate(args []string) (p *CLI, rest []string) {
	if len(args) == 0 {
		return nil, nil
	}
	// The name counts, not the executable: the CLIs also run themselves under other names, as a search tool or a
	// sandbox.
	name, rest := base(args[0]), args[1:]
	if p := programOf(name, args[0]); p != nil {
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

// base is the name of a program without its folder and without a system's extension.
func base(arg string) string {
	name := path.Base(strings.ReplaceAll(arg, `\`, "/"))
	for _, end := range []string{".exe", ".cmd", ".ps1"} {
		if len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			return name[:len(name)-len(end)]
		}
	}
	return name
}

// programOf returns the CLI of an executable or a script.
func programOf(name, full string) *CLI {
	full = strings.ReplaceAll(full, `\`, "/")
	for i := range table {
		p := &table[i]
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

// main reports whether a file in a CLI's package is the CLI, and not a bundled tool such as ripgrep.
func (p *program) main(name string) bool {
	stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".js"), ".mjs"), ".cjs")
	if stem == "cli" || stem == "cli-wrapper" || stem == "index" || slices.Contains(p.names, stem) || strings.HasPrefix(stem, p.names[0]+"-") {
		return true
	}
	return p.versioned && stem != "" && strings.Trim(stem, "0123456789.") == "" // claude/versions/2.1.330
}

// interpreted returns the CLI of a script that an interpreter runs.
func interpreted(only, args []string) (*CLI, []string) {
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
	evaluates = []string{"-e", "--eval", "-p", "--print", "-"}            // options of an interpreter that take code
	loads     = []string{"-r", "--require", "--import", "--loader", "-C"} // options whose value is the next argument
)

// packageRun returns the CLI that a package runner runs; decided is false if name is no package runner, or runs a
// local script.
func packageRun(name string, args []string) (p *CLI, rest []string, decided bool) {
	verbs, known := runners[name]
	if !known {
		return nil, nil, false
	}
	if verbs != nil {
		if len(args) == 0 || !slices.Contains(verbs, args[0]) {
			return nil, nil, name != "bun" // bun also runs scripts
		}
		args = args[1:]
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") || i > 0 && (args[i-1] == "-p" || args[i-1] == "--package") {
			continue // where the package comes from does not matter; the command follows
		}
		return packageOf(arg), args[i+1:], true
	}
	return nil, nil, true
}

// packageOf returns the CLI of a package, with or without a version, or of the command that it installs.
func packageOf(spec string) *CLI {
	name := spec
	if at := strings.LastIndex(spec, "@"); at > 0 {
		name = spec[:at]
	}
	for i := range table {
		if slices.Contains(table[i].packages, name) || slices.Contains(table[i].names, name) {
			return &table[i]
		}
	}
	return nil
}

// parts are a CLI's arguments up to "--", each with whether it is an option. The value of an option that takes the next one is
// left out.
func (p *program) parts(args []string) iter.Seq2[string, bool] {
	return func(yield func(arg string, isOption bool) bool) {
		for i := 0; i < len(args) && args[i] != "--"; i++ {
			isOption := strings.HasPrefix(args[i], "-")
			if !yield(args[i], isOption) {
				return
			}
			if isOption && slices.Contains(p.takes, args[i]) {
				i++
			}
		}
	}
}

// runs reports by a CLI's arguments whether it runs a session.
func (p *program) runs(args []string) bool {
	for arg, isOption := range p.parts(args) {
		switch {
		case !isOption:
			return !slices.Contains(p.other, arg)
		case slices.Contains(p.flags, arg):
			return false
		}
	}
	return true
}
