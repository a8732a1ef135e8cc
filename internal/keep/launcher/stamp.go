package launcher

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// FileStamp is a file's size and time. A file that does not exist is stamped, too, if the launcher would act
// differently once it exists.
type FileStamp struct {
	Path string `json:"path"`
	Size int64  `json:"size"`           // bytes; -1: the file did not exist
	Time int64  `json:"time,omitempty"` // last change of its content, Unix time in ns; symbolic links followed
}

func stamp(path string) FileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return FileStamp{Path: path, Size: -1}
	}
	return FileStamp{path, info.Size(), info.ModTime().UnixNano()}
}

// evidence collects stamps, each file once.
type evidence struct {
	stamps []FileStamp
	seen   map[string]bool
}

// add stamps the file, whether or not it exists.
func (e *evidence) add(path string) {
	if e.seen[path] {
		return
	}
	if e.seen == nil {
		e.seen = map[string]bool{}
	}
	e.seen[path] = true
	e.stamps = append(e.stamps, stamp(path))
}

// addFound stamps those of the names that are in dir.
func (e *evidence) addFound(dir string, names ...string) {
	for _, name := range names {
		if path := filepath.Join(dir, name); stamp(path).Size >= 0 {
			e.add(path)
		}
	}
}

// stampsOf stamps the files that determine which version o has started as argv: the executable, the script, and the
// package manager's records next to it.
func stampsOf(o order, dir, exe string, argv []string) []FileStamp {
	var e evidence
	e.add(exe)
	file, _ := script(dir, argv)
	if file != "" {
		e.add(file)
		if !python.MatchString(program(argv[0])) {
			e.nodePackage(file)
		}
	}
	e.pythonPackage(argv, file)
	switch o.kind {
	case UvRun:
		e.uvProject(inDir(dir, o.project))
		if file != "" {
			e.add(file + ".lock")
		}
	case Npx, NpmExec, PnpmDlx, Bunx, YarnDlx:
		// A package of the project itself has priority, so it matters when one is added.
		e.add(filepath.Join(dir, "package.json"))
		e.add(filepath.Join(dir, "node_modules", ".package-lock.json"))
	}
	return e.stamps
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// script finds the file that an interpreter runs: the first word that is an existing file and no option. Later words
// belong to the server, which may write to the files they name. path is "" if there is none, and ok is false if the
// words name one that does not exist.
func script(dir string, argv []string) (path string, ok bool) {
	if !isInterpreter(program(argv[0])) && !isShell(program(argv[0])) {
		return "", true
	}
	for _, word := range argv[1:] {
		if word == "-m" || word == "-c" || word == "-e" {
			return "", true
		}
		if word == "" || word[0] == '-' {
			continue
		}
		path := inDir(dir, word)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
		if filepath.IsAbs(word) {
			return path, false
		}
	}
	return "", true
}

// nodePackage stamps the package that the script belongs to and the lock files of the folder it was installed in.
func (e *evidence) nodePackage(script string) {
	for _, path := range []string{script, followed(script)} {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if stamp(filepath.Join(dir, "package.json")).Size >= 0 {
				e.add(filepath.Join(dir, "package.json"))
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
		// The first of several node_modules in the path is the one that was installed as a whole.
		const modules = string(filepath.Separator) + "node_modules" + string(filepath.Separator)
		if i := strings.Index(path, modules); i >= 0 {
			e.addFound(path[:i], "package.json", "package-lock.json", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "yarn.lock")
			e.addFound(path[:i+len(modules)], ".package-lock.json", ".modules.yaml", ".yarn-state.yml")
		}
	}
}

func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// pythonPackage stamps the interpreter's virtual environment and the record of the package with the script or the
// module.
func (e *evidence) pythonPackage(argv []string, script string) {
	root := filepath.Dir(filepath.Dir(argv[0]))
	if stamp(filepath.Join(root, "pyvenv.cfg")).Size < 0 {
		return
	}
	e.addFound(root, "pyvenv.cfg", "uv-receipt.toml", "pipx_metadata.json")
	records, err := filepath.Glob(filepath.Join(root, "lib", "python*", "site-packages", "*.dist-info", "RECORD"))
	if err != nil {
		return
	}
	var owned []byte
	switch {
	case script != "" && filepath.Dir(script) == filepath.Join(root, "bin"):
		owned = []byte("/bin/" + filepath.Base(script) + ",")
	case len(argv) > 2 && argv[1] == "-m":
		name, _, _ := strings.Cut(argv[2], ".")
		owned = []byte("\n" + name + "/")
	default:
		return
	}
	for _, path := range records {
		if mentions(path, owned) {
			e.add(path)
		}
	}
}

// recordLimit is how much of a RECORD is read, in bytes; those of the largest packages have a few hundred KiB.
const recordLimit = 4 << 20

func mentions(path string, text []byte) bool {
	f, err := atomicfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, recordLimit))
	return err == nil && bytes.Contains(append([]byte("\n"), b...), text)
}

// uvProject stamps the files that uv run compares with the environment before it starts anything.
func (e *evidence) uvProject(dir string) {
	e.add(filepath.Join(dir, ".python-version"))
	for ; ; dir = filepath.Dir(dir) {
		e.addFound(dir, "uv.toml", "uv.lock")
		if stamp(filepath.Join(dir, "pyproject.toml")).Size >= 0 {
			e.add(filepath.Join(dir, "pyproject.toml"))
			e.add(filepath.Join(dir, "uv.lock"))
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}
