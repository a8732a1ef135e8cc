package watch

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Auto returns the globs for the code of a server that argv starts in root: the directory of a script with its language's
// files, a Node.js package, a Python package ("-m"), a Go module ("go run"), or the binary alone. It looks through
// wrappers (env, uv run, npx tsx, sh -c) and at the file system, not at the environment except PATH. Globs of what is
// below root are relative to it, the others absolute.
//
// The error says what to write instead when argv names no code of its own, such as a package that is downloaded.
func Auto(root string, argv []string) ([]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("find what to watch: %w", err)
	}
	f := &finder{root: root, dir: root}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		f.real = real
	}
	if err := f.command(argv); err != nil {
		return nil, fmt.Errorf("what to watch cannot be told from %q: %w; %s", strings.Join(argv, " "), err, f.advice())
	}
	slices.Sort(f.globs)
	return slices.Compact(f.globs), nil
}

// finder collects globs.
type finder struct {
	root  string // what globs are relative to
	real  string // root without symbolic links
	dir   string // where the command runs: a wrapper may change it
	globs []string
	hint  string // example for the user
	depth int
}

// maxWrappers is how many wrappers around each other are looked through.
const maxWrappers = 8

func (f *finder) advice() string {
	hint := f.hint
	if hint == "" {
		hint = "src/**/*.py"
	}
	return fmt.Sprintf("name the files instead, for example --watch '%s'", hint)
}

// command finds the code of one command line.
func (f *finder) command(argv []string) error {
	if f.depth++; f.depth > maxWrappers {
		return fmt.Errorf("more than %d commands around each other", maxWrappers)
	}
	if len(argv) == 0 {
		return errors.New("there is no command")
	}
	name := programName(argv[0])
	if find := wrapper(name); find != nil {
		return find(f, argv[1:])
	}
	if r, ok := runtimes[name]; ok {
		f.hint = "src/**/" + r.lang.files
		return f.run(r, argv[1:])
	}
	if lang := languageOf(argv[0]); lang != nil && strings.ContainsAny(argv[0], `/\`) {
		return f.script(argv[0], lang)
	}
	return f.binary(argv[0])
}

// programName returns the name by which a program is known: "/usr/bin/python3.12" is "python".
func programName(argv0 string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(argv0, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	if short := strings.TrimRight(name, "0123456789."); runtimes[short].lang != nil {
		return short
	}
	return name
}

// at returns the path of a word of the command line.
func (f *finder) at(word string) string {
	if filepath.IsAbs(word) {
		return filepath.Clean(word)
	}
	return filepath.Join(f.dir, word)
}

// add notes what pattern chooses below dir.
func (f *finder) add(dir, pattern string) {
	if tooWide(dir) {
		pattern = strings.TrimPrefix(pattern, "**/")
	}
	f.globs = append(f.globs, joinGlob(f.quoted(dir), pattern))
}

// addFile notes one file, whether it exists or not.
func (f *finder) addFile(file string) {
	f.globs = append(f.globs, f.quoted(file))
}

// addExisting notes those of the names that are files in dir.
func (f *finder) addExisting(dir string, names []string) {
	for _, name := range names {
		if isFile(filepath.Join(dir, name)) {
			f.addFile(filepath.Join(dir, name))
		}
	}
}

// quoted returns p as a glob, relative to the root if it is below it.
func (f *finder) quoted(p string) string {
	for _, root := range []string{f.root, f.real} {
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
			return quote(filepath.ToSlash(rel))
		}
	}
	return quote(filepath.ToSlash(p))
}

func joinGlob(dir, pattern string) string {
	switch {
	case dir == ".":
		return pattern
	case strings.HasSuffix(dir, "/"):
		return dir + pattern
	}
	return dir + "/" + pattern
}

// tooWide reports whether a directory is no project but a place where everything lies: only its own files are watched.
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

// upTo returns the nearest directory from dir upwards that has one of the names, or "". It does not leave a node_modules
// folder, and ends where [tooWide] begins.
func upTo(dir string, names ...string) string {
	for {
		for _, name := range names {
			if isFile(filepath.Join(dir, name)) {
				return dir
			}
		}
		parent := filepath.Dir(dir)
		if tooWide(dir) || parent == dir || filepath.Base(parent) == "node_modules" {
			return ""
		}
		dir = parent
	}
}
