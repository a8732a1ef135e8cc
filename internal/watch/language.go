package watch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/wholefile"
)

// language is what belongs to a server's code besides the file that is started.
type language struct {
	files     string   // glob of a source file's name
	manifests []string // files of a project that change what runs
	project   []string // of these, the ones that mark a project's top directory; nil: the script's directory is the project
}

var (
	python = &language{files: "*.py", manifests: []string{"pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock",
		"Pipfile.lock", "requirements.txt", "setup.cfg"}}
	javaScript = &language{files: "*.{js,mjs,cjs,json}", manifests: nodeManifests, project: []string{"package.json"}}
	typeScript = &language{files: "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,json}", manifests: nodeManifests,
		project: []string{"package.json", "deno.json", "deno.jsonc"}}
	golang = &language{files: "*.go", manifests: []string{"go.mod", "go.sum"}, project: []string{"go.mod"}}
	rust   = &language{files: "*.rs", manifests: []string{"Cargo.toml", "Cargo.lock"}, project: []string{"Cargo.toml"}}
	dotnet = &language{files: "*.{cs,fs,csproj,fsproj}", manifests: []string{"appsettings.json"}}
	ruby   = &language{files: "*.rb", manifests: []string{"Gemfile", "Gemfile.lock"}, project: []string{"Gemfile"}}
	php    = &language{files: "*.php", manifests: []string{"composer.json", "composer.lock"}, project: []string{"composer.json"}}
	perl   = &language{files: "*.{pl,pm}"}
	lua    = &language{files: "*.lua"}
	shell  = &language{files: "*.{sh,bash}"}
	java   = &language{files: "*.jar"}
)

// nodeManifests do not name package.json and package-lock.json: they are *.json.
var nodeManifests = []string{"pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "deno.lock", "deno.jsonc"}

var languages = map[string]*language{
	".py": python, ".pyw": python, ".pyz": python,
	".js": javaScript, ".mjs": javaScript, ".cjs": javaScript,
	".ts": typeScript, ".mts": typeScript, ".cts": typeScript, ".tsx": typeScript, ".jsx": typeScript,
	".rb": ruby, ".php": php, ".pl": perl, ".lua": lua, ".sh": shell, ".bash": shell,
}

func languageOf(name string) *language {
	return languages[strings.ToLower(filepath.Ext(name))]
}

// script finds what belongs to the script that word names.
func (f *finder) script(word string, lang *language) error {
	file := f.at(word)
	if !isFile(file) {
		return fmt.Errorf("there is no file %s", file)
	}
	f.addFile(file)
	if st, err := os.Lstat(file); err == nil && st.Mode()&os.ModeSymlink != 0 {
		// Interpreters look for other files beside the real one.
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = real
			f.addFile(file)
		}
	}
	if byName := languageOf(file); byName != nil {
		lang = byName
	} else if project, ok := venvProject(file); ok {
		return f.project(project, python)
	}
	dir := filepath.Dir(file)
	if lang == python {
		dir = packageTop(dir)
		f.addManifests(dir, lang)
		f.add(dir, "**/"+lang.files)
		return nil
	}
	top := dir
	if found := upTo(dir, lang.project...); found != "" {
		top = found
	}
	f.addManifests(top, lang)
	f.add(top, "**/"+lang.files)
	if rel, err := filepath.Rel(top, dir); err == nil && rel != "." {
		// Its own glob, so that it counts although git ignores it, as it does what was compiled.
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		f.add(filepath.Join(top, first), "**/"+lang.files)
	}
	return nil
}

// project finds what belongs to the project in or above dir.
func (f *finder) project(dir string, lang *language) error {
	names := lang.project
	if names == nil {
		names = lang.manifests
	}
	top := upTo(dir, names...)
	if top == "" {
		return fmt.Errorf("there is no %s in %s", strings.Join(names, " or "), dir)
	}
	f.add(top, "**/"+lang.files)
	f.addManifests(top, lang)
	return nil
}

// addManifests notes the manifests of the nearest project from dir upwards, as far as the root, or of dir.
func (f *finder) addManifests(dir string, lang *language) {
	for at := dir; ; at = filepath.Dir(at) {
		before := len(f.globs)
		f.addExisting(at, lang.manifests)
		if len(f.globs) > before || at == f.dir || tooWide(at) {
			return
		}
	}
}

// packageTop returns the directory of the outermost Python package that dir is in, or dir.
func packageTop(dir string) string {
	for isFile(filepath.Join(dir, "__init__.py")) && isFile(filepath.Join(filepath.Dir(dir), "__init__.py")) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// venvProject returns the project of a program that was installed into the virtual environment inside of it.
func venvProject(file string) (dir string, ok bool) {
	venv := filepath.Dir(filepath.Dir(file))
	if !isFile(filepath.Join(venv, "pyvenv.cfg")) {
		return "", false
	}
	dir = upTo(filepath.Dir(venv), python.manifests...)
	return dir, dir != ""
}

// module finds the Python module or package that "-m" names, in the directory or its src, where editable installations
// have it.
func (f *finder) module(name string) error {
	f.hint = "src/**/" + python.files
	first, _, _ := strings.Cut(name, ".")
	if first == "" || strings.ContainsAny(first, `/\:`) {
		return fmt.Errorf("%q is no module", name)
	}
	for _, dir := range []string{f.dir, filepath.Join(f.dir, "src")} {
		if pkg := filepath.Join(dir, first); isDirectory(pkg) {
			f.add(pkg, "**/"+python.files)
			f.addManifests(dir, python)
			return nil
		}
		if file := filepath.Join(dir, first+".py"); isFile(file) {
			f.add(dir, "**/"+python.files)
			f.addManifests(dir, python)
			return nil
		}
	}
	return fmt.Errorf("module %s is neither in %s nor in its src", first, f.dir)
}

// binary finds the file of a program: itself, and what it is a link to. A script is looked at as such.
func (f *finder) binary(argv0 string) error {
	if downloads[programName(argv0)] {
		return fmt.Errorf("%s runs what is elsewhere", argv0)
	}
	file, err := child.Resolve(argv0, f.dir)
	if err != nil {
		return err
	}
	if words := shebang(file); len(words) > 0 {
		name := programName(words[0])
		if name == "env" {
			for words = words[1:]; len(words) > 0 && strings.HasPrefix(words[0], "-"); words = words[1:] {
			}
		}
		if len(words) > 0 {
			if r, ok := runtimes[programName(words[0])]; ok {
				return f.shebangScript(file, r.lang)
			}
		}
	}
	f.addFile(file)
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Base(real) != filepath.Base(file) {
		f.addFile(real)
	}
	return nil
}

// shebangScript is about a script that is started by its own name. If that has no extension, it usually lies among
// programs of all kinds, whose directory says nothing.
func (f *finder) shebangScript(file string, lang *language) error {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	_, installed := venvProject(real)
	if installed || languageOf(real) != nil {
		return f.script(file, lang)
	}
	f.addFile(file)
	if real != file {
		f.addFile(real)
	}
	return nil
}

// shebang returns the words of a script's first line, without "#!".
func shebang(file string) []string {
	in, err := wholefile.Open(file)
	if err != nil {
		return nil
	}
	defer in.Close()
	line, err := bufio.NewReader(io.LimitReader(in, 512)).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil
	}
	text, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	return strings.Fields(text)
}
