package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sources are, by the extension of a script, the globs of the files that belong to its program.
var sources = map[string]string{
	".py": "*.py", ".pyw": "*.{py,pyw}",
	".js": "*.{js,mjs,cjs,json}", ".mjs": "*.{js,mjs,cjs,json}", ".cjs": "*.{js,mjs,cjs,json}",
	".ts": typeScript, ".mts": typeScript, ".cts": typeScript, ".tsx": typeScript, ".jsx": typeScript,
	".go": golang, ".rb": "*.rb", ".php": "*.php", ".pl": "*.{pl,pm}", ".lua": "*.lua", ".sh": "*.{sh,bash}", ".bash": "*.{sh,bash}",
}

const (
	typeScript = "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,json}"
	golang     = "*.go"
)

// Auto returns the globs for the code of a server that argv starts in root. Its script is the first argument that names
// a file of a known language, or what "go run" compiles. A path may be relative to root, or to a directory named before
// it ("uv --directory DIR run server.py"). It chooses the script, the files of its language in its directory, and those
// in its project: the nearest directory above it with a .gitignore, or the top of a git work tree. Without a script, a
// program given by its path is watched itself. Globs below root are relative to it, the others absolute.
//
// The error says what to write instead when argv has neither, as with a downloaded package.
func Auto(root string, argv []string) ([]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("find what to watch: %w", err)
	}
	f := &finder{roots: []string{root}}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		f.roots = append(f.roots, real)
	}
	if err := f.command(root, argv); err != nil {
		return nil, fmt.Errorf("what to watch cannot be told from %q: %w; name the files instead",
			strings.Join(argv, " "), err)
	}
	slices.Sort(f.globs)
	return slices.Compact(f.globs), nil
}

// finder collects globs.
type finder struct {
	roots []string // base directories of globs, also with links resolved
	globs []string
}

// command finds the script of a command line that is run in dir.
func (f *finder) command(dir string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("there is no command")
	}
	bases := []string{dir} // base directories of a path: the last one named comes first
	for i, word := range argv[1:] {
		for _, base := range bases {
			if f.code(at(base, word), runsGo(argv[:i+1])) {
				return nil
			}
		}
		if p := at(dir, word); isDirectory(p) {
			bases = slices.Insert(bases, 0, p)
		}
	}
	if program := at(dir, argv[0]); strings.ContainsAny(argv[0], `/\`) && isFile(program) {
		f.program(program)
		return nil
	}
	return errors.New("no argument of it is a script")
}

// code adds p and what belongs to it if it is a script, or, for "go run", a package.
func (f *finder) code(p string, goRun bool) bool {
	switch files := sourcesOf(p); {
	case files != "" && isFile(p):
		f.script(p, files)
	case goRun && isDirectory(p):
		f.source(p, golang)
	default:
		return false
	}
	return true
}

func sourcesOf(file string) string { return sources[strings.ToLower(filepath.Ext(file))] }

// runsGo reports whether words contain "go run".
func runsGo(words []string) bool {
	i := slices.IndexFunc(words, func(word string) bool { return strings.TrimSuffix(filepath.Base(word), ".exe") == "go" })
	return i >= 0 && slices.Contains(words[i:], "run")
}

// script adds a script and what belongs to it. If it is a link, these are beside the real file: interpreters look there.
func (f *finder) script(file, files string) { f.source(filepath.Dir(f.addFile(file)), files) }

// source adds the files in a directory, and in its project. The directory has a glob of its own, so that it counts even
// if git ignores it, as with compiled files.
func (f *finder) source(dir, files string) {
	f.add(dir, files)
	if project := projectOf(dir); project != "" {
		f.add(project, files)
	}
}

// program notes a program that is given by its path: as a script if it has the name of one, otherwise alone.
func (f *finder) program(file string) {
	if files := sourcesOf(file); files != "" {
		f.script(file, files)
		return
	}
	f.addFile(file)
}

// linked is the target of a link, "" if it is none.
func linked(file string) string {
	if st, err := os.Lstat(file); err != nil || st.Mode()&os.ModeSymlink == 0 {
		return ""
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	return real
}

// at returns the path of a word of the command line that is run in dir.
func at(dir, word string) string {
	if filepath.IsAbs(word) {
		return filepath.Clean(word)
	}
	return filepath.Join(dir, word)
}

// add notes the files below dir, or only those in it where it is not a place of one program.
func (f *finder) add(dir, files string) {
	if !tooWide(dir) {
		files = "**/" + files
	}
	f.globs = append(f.globs, joinGlob(f.quoted(dir), files))
}

// addFile notes one file and, of a link, its target, and returns the last of them.
func (f *finder) addFile(file string) (real string) {
	f.globs = append(f.globs, f.quoted(file))
	if target := linked(file); target != "" {
		f.globs = append(f.globs, f.quoted(target))
		return target
	}
	return file
}

// quoted returns p as a glob, relative to the root if it is below it.
func (f *finder) quoted(p string) string {
	for _, root := range f.roots {
		if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
			return quote(filepath.ToSlash(rel))
		}
	}
	return quote(filepath.ToSlash(p))
}

func joinGlob(dir, files string) string {
	switch {
	case dir == ".":
		return files
	case strings.HasSuffix(dir, "/"):
		return dir + files
	}
	return dir + "/" + files
}

// projectOf returns the nearest directory from dir upwards that has a .gitignore or is the top of a git work tree, or "".
// It does not leave a node_modules folder, and ends where [tooWide] begins.
func projectOf(dir string) string {
	for !tooWide(dir) && filepath.Base(dir) != "node_modules" {
		if isFile(filepath.Join(dir, ".gitignore")) || gitDir(filepath.ToSlash(dir)) != "" {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// tooWide reports whether a directory is not a project but a place where everything lies: only its own files are watched.
func tooWide(dir string) bool {
	dir = filepath.Clean(dir)
	wide := []string{filepath.Dir(dir), filepath.Clean(os.TempDir())} // only the top is its own parent
	if home, err := os.UserHomeDir(); err == nil {
		wide = append(wide, filepath.Clean(home))
	}
	return slices.Contains(wide, dir)
}

func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

func isDirectory(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}
