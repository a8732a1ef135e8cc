package watch

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// rules are the ignore files of all directories asked about so far, read when first needed. When one of the files
// changes, all are read again.
type rules struct {
	starts   []string            // where the watching begins, slash paths
	dirs     map[string]*ruleDir // by slash path
	stamps   map[string]stamp    // ignore files that were read
	gits     map[string]bool     // git directories: where an index.lock can be
	despite  map[*pattern]bool   // globs for which they do not count, because they would leave nothing
	replaced bool                // an ignore file may be new
}

// ruleDir is the content of one directory's ignore files.
type ruleDir struct {
	dir     string
	up      *ruleDir // next to ask; nil at the top of a repository
	lines   []ignoreLine
	exclude []ignoreLine // of .git/info/exclude, which every .gitignore overrules
	inRepo  bool
	ignored bool // the directory itself is
}

func newRules(starts []string) *rules {
	return &rules{starts: starts, dirs: map[string]*ruleDir{}, stamps: map[string]stamp{}, gits: map[string]bool{}, despite: map[*pattern]bool{}}
}

// ignores reports whether git would ignore the file or directory at the absolute slash path p. As in git, nothing below
// an ignored directory can be included again.
func (r *rules) ignores(p string, isDir bool) bool {
	d := r.of(path.Dir(p))
	return d.ignored || d.judge(p, isDir) == ignored
}

// judge asks the directory's own lines, then those above. The deepest line that matches decides.
func (d *ruleDir) judge(p string, isDir bool) ignoreState {
	for at := d; at != nil; at = at.up {
		rel, ok := below(at.dir, p)
		if !ok {
			return undecided
		}
		if v := judge(at.lines, rel, isDir); v != undecided {
			return v
		}
		if v := judge(at.exclude, rel, isDir); v != undecided {
			return v
		}
	}
	return undecided
}

func (r *rules) of(dir string) *ruleDir {
	if d := r.dirs[dir]; d != nil {
		return d
	}
	d := &ruleDir{dir: dir}
	var up *ruleDir
	if parent := path.Dir(dir); parent != dir {
		up = r.of(parent)
	}
	if git := gitDir(dir); git != "" {
		d.inRepo = true
		r.gits[git] = true
		d.exclude = r.read(commonDir(git) + "/info/exclude")
		// A repository inside another one has its own rules, but may be ignored as a whole, unless it is where the
		// watching begins: many people's home directory is a repository that ignores everything.
		d.ignored = up != nil && r.inside(up.dir) && (up.ignored || up.judge(dir, true) == ignored)
	} else if up != nil {
		d.up, d.inRepo = up, up.inRepo
		d.ignored = up.ignored || up.judge(dir, true) == ignored
	}
	if d.inRepo || r.inside(dir) {
		d.lines = r.read(dir + "/.gitignore")
	}
	r.dirs[dir] = d
	return d
}

// inside reports whether dir is a start or below one.
func (r *rules) inside(dir string) bool {
	return slices.ContainsFunc(r.starts, func(start string) bool {
		_, ok := below(start, dir)
		return ok || dir == start
	})
}

const ignoreFileLimit = 1 << 20 // bytes

func (r *rules) read(name string) []ignoreLine {
	st, err := os.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil
	}
	r.stamps[name] = stampOf(st)
	text, err := atomicfile.Read(filepath.FromSlash(name), ignoreFileLimit)
	if err != nil {
		return nil
	}
	return parseIgnore(text)
}

// stale reports whether an ignore file is another one now, or gone.
func (r *rules) stale() bool {
	for name, known := range r.stamps {
		st, err := os.Stat(filepath.FromSlash(name))
		if err != nil || stampOf(st) != known {
			return true
		}
	}
	return r.replaced
}

// lockPatience is the age at which an index.lock counts as left behind by a git that died.
const lockPatience = time.Minute

// locked reports whether git is changing the files of a repository right now.
func (r *rules) locked(now time.Time) bool {
	for git := range r.gits {
		st, err := os.Stat(filepath.FromSlash(git + "/index.lock"))
		if err == nil && now.Sub(st.ModTime()) < lockPatience {
			return true
		}
	}
	return false
}

// gitFileLimit is how much of a file of git's own that names a folder is read, in bytes.
const gitFileLimit = 1 << 16

// gitDir returns the git directory of a work tree whose top is dir, or "": its .git, or, in a linked work tree and a
// submodule, the directory named in the file .git.
func gitDir(dir string) string {
	name := strings.TrimSuffix(dir, "/") + "/.git"
	st, err := os.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return ""
	case st.IsDir():
		return name
	}
	text, err := atomicfile.Read(filepath.FromSlash(name), gitFileLimit)
	if err != nil {
		return ""
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !ok {
		return ""
	}
	target = filepath.ToSlash(target)
	if !filepath.IsAbs(filepath.FromSlash(target)) {
		target = path.Join(dir, target)
	}
	return target
}

// commonDir returns the directory shared by all linked work trees.
func commonDir(git string) string {
	text, err := atomicfile.Read(filepath.FromSlash(git+"/commondir"), gitFileLimit)
	if err != nil {
		return git
	}
	common := filepath.ToSlash(strings.TrimSpace(string(text)))
	if filepath.IsAbs(filepath.FromSlash(common)) {
		return common
	}
	return path.Join(git, common)
}

// below returns p relative to dir if it is below it. Both are clean slash paths.
func below(dir, p string) (rel string, ok bool) {
	if strings.HasSuffix(dir, "/") { // "/" and "C:/"
		return p[min(len(dir), len(p)):], len(p) > len(dir) && strings.HasPrefix(p, dir)
	}
	if len(p) <= len(dir)+1 || p[len(dir)] != '/' || p[:len(dir)] != dir {
		return "", false
	}
	return p[len(dir)+1:], true
}
