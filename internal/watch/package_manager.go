package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options with a value of uv and uv run that stand before the command.
var uvValued = []string{
	"--directory", "--project", "-m", "--module", "--with", "--with-editable", "--with-requirements", "--extra", "--group",
	"--only-group", "--no-group", "--env-file", "-p", "--python", "--package", "--index", "--default-index", "--index-url",
	"--extra-index-url", "--find-links", "-f", "--cache-dir", "--config-file", "--color", "--refresh-package",
	"--upgrade-package", "-P", "--reinstall-package", "--config-setting", "-C", "--link-mode", "--resolution", "--prerelease",
}

// uv is "uv run", also of a project elsewhere, and "uv tool run".
func (f *finder) uv(args []string) error {
	f.hint = "src/**/" + python.files
	module, project := "", ""
	seen := func(option, value string) {
		switch option {
		case "--directory":
			f.dir = f.at(value)
		case "--project":
			project = f.at(value)
		case "-m", "--module":
			module = value
		}
	}
	args = skipOptions(args, uvValued, seen)
	if len(args) > 1 && args[0] == "tool" && args[1] == "run" {
		return f.uvx(args[2:])
	}
	if len(args) == 0 || args[0] != "run" {
		return errors.New("uv without run starts no server")
	}
	args = skipOptions(args[1:], uvValued, seen)
	if module != "" {
		return f.module(module)
	}
	if project == "" {
		project = f.dir
	}
	return f.pythonCommand(args, project)
}

// pythonCommand is a command in a project's environment: a script, python, or a program that the project installs.
func (f *finder) pythonCommand(args []string, project string) error {
	if len(args) == 0 {
		return errors.New("no command is named")
	}
	if languageOf(args[0]) == python {
		return f.script(args[0], python)
	}
	if name := programName(args[0]); runtimes[name].lang != nil || wrapper(name) != nil {
		return f.command(args)
	}
	return f.project(project, python)
}

func (f *finder) pythonRun(args []string) error {
	f.hint = "src/**/" + python.files
	args = skipOptions(args, []string{"-C", "--directory", "-p", "--project", "-P"}, func(_, value string) { f.dir = f.at(value) })
	if len(args) == 0 || args[0] != "run" {
		return errors.New("no run starts no server")
	}
	return f.pythonCommand(skipOptions(args[1:], nil, nil), f.dir)
}

// uvx runs a package: only one that is a local directory has code to watch.
func (f *finder) uvx(args []string) error {
	f.hint = "src/**/" + python.files
	from := ""
	valued := []string{"--from", "--spec", "--with", "--with-editable", "-p", "--python", "--index", "--index-url", "--refresh-package"}
	seen := func(option, value string) {
		if option == "--from" || option == "--spec" || option == "--with-editable" {
			from = value
		}
	}
	args = skipOptions(args, valued, seen)
	if len(args) > 0 && args[0] == "run" { // pipx run
		args = skipOptions(args[1:], valued, seen)
	}
	if from == "" && len(args) > 0 {
		from = args[0]
	}
	if from != "" && isDirectory(f.at(from)) && (strings.ContainsAny(from, `/\`) || from == ".") {
		return f.project(f.at(from), python)
	}
	return fmt.Errorf("the package %s is installed from elsewhere", from)
}

// npx runs a package, or a runtime such as tsx.
func (f *finder) npx(args []string) error {
	f.hint = "src/**/" + typeScript.files
	args = skipOptions(args, []string{"-p", "--package", "-w", "--workspace", "--prefix", "-c", "--call"}, nil)
	if len(args) == 0 {
		return errors.New("no package is named")
	}
	if r, ok := runtimes[programName(args[0])]; ok && (r.lang == javaScript || r.lang == typeScript) {
		return f.command(args)
	}
	if strings.ContainsAny(args[0], `/\`) && !strings.HasPrefix(args[0], "@") || args[0] == "." {
		if isDirectory(f.at(args[0])) {
			return f.project(f.at(args[0]), typeScript)
		}
		return f.entry(args[0], javaScript)
	}
	return fmt.Errorf("the package %s is installed from elsewhere", args[0])
}

// npm is npm, pnpm or yarn: a script of package.json, or a package.
func (f *finder) npm(args []string) error {
	f.hint = "src/**/" + typeScript.files
	valued := []string{"--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "-F", "--filter"}
	seen := func(option, value string) {
		if !slices.Contains([]string{"-w", "--workspace", "-F", "--filter"}, option) {
			f.dir = f.at(value)
		}
	}
	args = skipOptions(args, valued, seen)
	if len(args) > 0 && slices.Contains([]string{"exec", "x", "dlx"}, args[0]) {
		return f.npx(args[1:])
	}
	skipOptions(args[min(1, len(args)):], valued, seen)
	return f.project(f.dir, typeScript)
}

func (f *finder) bun(args []string) error {
	f.hint = "src/**/" + typeScript.files
	args = skipOptions(args, []string{"--cwd", "-r", "--preload", "--env-file", "-c", "--config"}, func(option, value string) {
		if option == "--cwd" {
			f.dir = f.at(value)
		}
	})
	if len(args) > 0 && args[0] == "x" {
		return f.npx(args[1:])
	}
	if len(args) > 0 && args[0] == "run" {
		args = skipOptions(args[1:], []string{"--cwd"}, nil)
	}
	if len(args) > 0 && f.entry(args[0], typeScript) == nil {
		return nil
	}
	return f.project(f.dir, typeScript) // a script of package.json
}

func (f *finder) deno(args []string) error {
	f.hint = "src/**/" + typeScript.files
	if len(args) > 0 && args[0] == "task" {
		return f.project(f.dir, typeScript)
	}
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	args = skipOptions(args, []string{"-c", "--config", "--import-map", "--lock", "--location", "--env-file"}, nil)
	if len(args) == 0 || strings.Contains(args[0], ":") {
		return errors.New("the program is not a local file")
	}
	return f.entry(args[0], typeScript)
}

// goRun is "go run": the module, because packages of it are compiled together.
func (f *finder) goRun(args []string) error {
	f.hint = "**/" + golang.files
	dir := func(option, value string) {
		if option == "-C" {
			f.dir = f.at(value)
		}
	}
	args = skipOptions(args, []string{"-C"}, dir)
	if len(args) == 0 || args[0] != "run" {
		return errors.New("go without run starts no server")
	}
	args = skipOptions(args[1:], []string{"-C", "-tags", "-ldflags", "-gcflags", "-mod", "-modfile", "-exec", "-p"}, dir)
	if len(args) == 0 || strings.Contains(args[0], "@") {
		return errors.New("the package is installed from elsewhere")
	}
	at := f.at(args[0])
	if isFile(at) && upTo(f.dir, "go.mod") == "" {
		return f.script(args[0], golang)
	}
	if !isDirectory(at) {
		at = f.dir
	}
	return f.project(at, golang)
}

func (f *finder) cargo(args []string) error {
	f.hint = "src/**/" + rust.files
	if !slices.Contains(args, "run") {
		return errors.New("cargo without run starts no server")
	}
	return f.project(f.dir, rust)
}

// dotnet is "dotnet run" in or for a project, or "dotnet server.dll".
func (f *finder) dotnet(args []string) error {
	f.hint = "**/" + dotnet.files
	if len(args) > 0 && strings.HasSuffix(strings.ToLower(args[0]), ".dll") && isFile(f.at(args[0])) {
		f.addFile(f.at(args[0]))
		return nil
	}
	if len(args) == 0 || args[0] != "run" && args[0] != "watch" {
		return errors.New("no program is named")
	}
	skipOptions(args[1:], []string{"--project", "-p", "-c", "--configuration", "-f", "--framework"}, func(option, value string) {
		if option == "--project" || option == "-p" {
			f.dir = f.at(value)
		}
	})
	if !isDirectory(f.dir) {
		return fmt.Errorf("there is no directory %s", f.dir)
	}
	f.add(f.dir, "**/"+dotnet.files)
	f.addManifests(f.dir, dotnet)
	return nil
}

// java is "java -jar server.jar": that file.
func (f *finder) java(args []string) error {
	f.hint = "build/**/" + java.files
	for i, arg := range args {
		if arg == "-jar" && i+1 < len(args) && isFile(f.at(args[i+1])) {
			f.addFile(f.at(args[i+1]))
			return nil
		}
	}
	return errors.New("no jar file is named")
}
