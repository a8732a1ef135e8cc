package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// interpreter runs a script that is among its arguments.
type interpreter struct {
	lang   *language
	valued []string // options that are followed by a value; those with "=" need no mention
	inline []string // options whose value is the program itself
}

var runtimes = map[string]interpreter{
	"python":  {python, []string{"-W", "-X", "--check-hash-based-pycs"}, []string{"-c"}},
	"pythonw": {python, []string{"-W", "-X"}, []string{"-c"}},
	"pypy":    {python, []string{"-W", "-X"}, []string{"-c"}},
	"node": {javaScript, []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions",
		"--env-file", "--input-type"}, []string{"-e", "--eval", "-p", "--print"}},
	"nodejs":  {javaScript, []string{"-r", "--require", "--import", "--loader"}, []string{"-e", "-p"}},
	"tsx":     {typeScript, []string{"--tsconfig", "-r", "--require", "--import", "--env-file"}, []string{"-e", "--eval"}},
	"ts-node": {typeScript, []string{"-P", "--project", "-r", "--require", "-O", "-C"}, []string{"-e", "--eval"}},
	"nodemon": {javaScript, []string{"-w", "--watch", "-e", "--ext", "-x", "--exec"}, nil},
	"ruby":    {ruby, []string{"-r", "-I", "-C", "-E"}, []string{"-e"}},
	"php":     {php, []string{"-c", "-d", "-z"}, []string{"-r"}},
	"perl":    {perl, []string{"-I"}, []string{"-e", "-E"}},
	"lua":     {lua, []string{"-l"}, []string{"-e"}},
	"luajit":  {lua, []string{"-l"}, []string{"-e"}},
	"mcp":     {python, []string{"-t", "--transport", "--with", "--with-editable", "-e"}, nil},
	"fastmcp": {python, []string{"-t", "--transport", "--host", "--port", "--with", "--with-editable", "-e"}, nil},
}

// subcommands stand between some runtimes and their script.
var subcommands = map[*language][]string{
	python: {"run", "dev"}, typeScript: {"watch"},
}

// downloads run code that is not among the local files.
var downloads = map[string]bool{
	"docker": true, "podman": true, "nerdctl": true, "ssh": true, "kubectl": true, "make": true, "just": true, "nix": true,
}

// wrapper finds what a command that starts another one, or builds and starts a project, makes of its arguments; nil: it is
// none.
func wrapper(name string) func(*finder, []string) error {
	switch name {
	case "env":
		return (*finder).env
	case "nohup", "setsid", "time", "exec":
		return behind()
	case "nice":
		return behind("-n")
	case "ionice":
		return behind("-c", "-n")
	case "stdbuf":
		return behind("-i", "-o", "-e")
	case "timeout":
		return func(f *finder, args []string) error {
			args = skipOptions(args, []string{"-k", "-s"}, nil)
			return f.command(args[min(1, len(args)):])
		}
	case "sh", "bash", "zsh", "dash", "cmd":
		return (*finder).shell
	case "uv":
		return (*finder).uv
	case "uvx", "pipx":
		return (*finder).uvx
	case "poetry", "pdm", "pipenv", "hatch", "rye":
		return (*finder).pythonRun
	case "npx", "bunx":
		return (*finder).npx
	case "npm", "pnpm", "yarn":
		return (*finder).npm
	case "bun":
		return (*finder).bun
	case "deno":
		return (*finder).deno
	case "go":
		return (*finder).goRun
	case "cargo":
		return (*finder).cargo
	case "dotnet":
		return (*finder).dotnet
	case "java":
		return (*finder).java
	}
	return nil
}

// behind finds the command behind a wrapper's own options, of which those in valued have a value.
func behind(valued ...string) func(*finder, []string) error {
	return func(f *finder, args []string) error { return f.command(skipOptions(args, valued, nil)) }
}

// skipOptions returns args from the first that is no option. Those in valued take the word behind them, which seen is
// told. "--" ends the options.
func skipOptions(args, valued []string, seen func(option, value string)) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		if args[0] == "--" {
			return args[1:]
		}
		option, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if !slices.Contains(valued, option) {
			continue
		}
		if !joined && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if seen != nil {
			seen(option, value)
		}
	}
	return args
}

// run finds the script among an interpreter's arguments.
func (f *finder) run(r interpreter, args []string) error {
	module, inline := "", false
	valued := slices.Concat(r.valued, r.inline)
	if r.lang == python {
		valued = append(valued, "-m")
	}
	seen := func(option, value string) {
		switch {
		case inline || module != "": // what follows is for the program
		case slices.Contains(r.inline, option):
			inline = true
		case option == "-m" && r.lang == python:
			module = value
		}
	}
	rest := skipOptions(args, valued, seen)
	if len(rest) > 1 && slices.Contains(subcommands[r.lang], rest[0]) && !isFile(f.at(rest[0])) {
		rest = skipOptions(rest[1:], valued, seen)
	}
	switch {
	case module != "":
		return f.module(module)
	case inline:
		return errors.New("the program is on the command line itself")
	case len(rest) == 0 || rest[0] == "-":
		return errors.New("no script is named")
	}
	return f.entry(rest[0], r.lang)
}

// entry finds the script of a runtime: a file, for Node.js also without extension, a directory, for Python frameworks
// "file.py:object".
func (f *finder) entry(word string, lang *language) error {
	file := f.at(word)
	if isFile(file) {
		return f.script(word, lang)
	}
	if name, _, ok := strings.Cut(word, ".py:"); ok {
		return f.script(name+".py", lang)
	}
	if lang == javaScript || lang == typeScript {
		for _, ext := range []string{".js", ".mjs", ".cjs", ".ts"} {
			if isFile(file + ext) {
				return f.script(word+ext, lang)
			}
		}
	}
	if isDirectory(file) {
		f.add(file, "**/"+lang.files)
		f.addManifests(file, lang)
		return nil
	}
	return fmt.Errorf("there is no file %s", file)
}

func (f *finder) env(args []string) error {
	args = skipOptions(args, []string{"-u", "-C", "--chdir", "-S"}, func(option, value string) {
		if option == "-C" || option == "--chdir" {
			f.dir = f.at(value)
		}
	})
	for len(args) > 0 && strings.Contains(args[0], "=") {
		args = args[1:]
	}
	return f.command(args)
}

// shell looks into "-c" as far as that is one plain command, with "cd DIR &&" before it.
func (f *finder) shell(args []string) error {
	f.hint = "**/" + shell.files
	for i, arg := range args {
		switch {
		case strings.EqualFold(arg, "/c") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c"):
			words := strings.Fields(strings.Join(args[i+1:min(len(args), i+2)], " "))
			if strings.EqualFold(arg, "/c") {
				words = args[i+1:]
			}
			if len(words) > 3 && words[0] == "cd" && words[2] == "&&" {
				f.dir = f.at(strings.Trim(words[1], `"'`))
				words = words[3:]
			}
			if strings.ContainsAny(strings.Join(words, " "), "|;&$`<>(){}\"'\n") {
				return errors.New("it is a shell program of more than one plain command")
			}
			return f.command(words)
		case !strings.HasPrefix(arg, "-"):
			return f.script(arg, shell)
		}
	}
	return errors.New("no script is named")
}
