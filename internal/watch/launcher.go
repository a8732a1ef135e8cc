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

// wrappers start another command, or build and start a project. They are functions of their arguments.
var wrappers map[string]func(*finder, []string) error

// The table is filled here because its functions lead back to it.
func init() {
	plain := func(valued ...string) func(*finder, []string) error {
		return func(f *finder, args []string) error { return f.command(skipOptions(args, valued, nil)) }
	}
	wrappers = map[string]func(*finder, []string) error{
		"env": (*finder).env, "nohup": plain(), "setsid": plain(), "time": plain(), "exec": plain(),
		"nice": plain("-n"), "ionice": plain("-c", "-n"), "stdbuf": plain("-i", "-o", "-e"),
		"timeout": func(f *finder, args []string) error {
			args = skipOptions(args, []string{"-k", "-s"}, nil)
			return f.command(args[min(1, len(args)):])
		},
		"sh": (*finder).shell, "bash": (*finder).shell, "zsh": (*finder).shell, "dash": (*finder).shell, "cmd": (*finder).shell,
		"uv": (*finder).uv, "uvx": (*finder).uvx, "pipx": (*finder).uvx,
		"poetry": (*finder).pythonRun, "pdm": (*finder).pythonRun, "pipenv": (*finder).pythonRun, "hatch": (*finder).pythonRun, "rye": (*finder).pythonRun,
		"npx": (*finder).npx, "bunx": (*finder).npx,
		"npm": (*finder).npm, "pnpm": (*finder).npm, "yarn": (*finder).npm, "bun": (*finder).bun, "deno": (*finder).deno,
		"go": (*finder).goRun, "cargo": (*finder).cargo, "dotnet": (*finder).dotnet, "java": (*finder).java,
	}
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
