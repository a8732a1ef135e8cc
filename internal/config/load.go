package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/problem"
	"github.com/outlive-mcp/outlive/internal/secret"
	"github.com/outlive-mcp/outlive/internal/wholefile"
)

// largest is how long a configuration may be, in bytes. A whole ~/.claude.json with its history has to fit.
const largest = 16 << 20

// Load reads a configuration. Mistakes in it are returned together as [*problem.Problems]; a file that cannot be read is an
// error as os gives it.
func Load(path string, opts Options) (*File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	data, err := readConfig(absolute)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if opts.Seen != nil {
		opts.Seen(data)
	}
	if opts.Dir == "" {
		opts.Dir = filepath.Dir(absolute)
	}
	return Parse(path, data, opts)
}

// readConfig reads a configuration, which may come through a pipe of the shell, and no more of it than shows that it is too long.
func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	return io.ReadAll(io.LimitReader(f, largest+1))
}

// Parse reads a configuration that is in memory. name is what it is called in messages; its end and its folder
// (.vscode, .cursor) also help to recognise it. Relative paths in it start at opts.Dir, or else at the folder of name.
func Parse(name string, data []byte, opts Options) (*File, error) {
	if opts.ReadFile == nil {
		opts.ReadFile = wholefile.Read
	}
	r := newReader(name, data, opts)
	if r.dry = opts.Input != nil; r.readable() {
		r.read()
	}
	if r.dry && r.asked && len(r.problems) == 0 { // nobody is asked for the sake of a file that is wrong
		r = newReader(name, data, opts)
		if r.readable() {
			r.read()
		}
	}
	if err := r.source.Problems(r.problems); err != nil {
		return nil, err
	}
	r.file.Warnings = problem.InOrder(r.warnings)
	r.file.source = r.source
	return r.file, nil
}

// reader is one reading of one file.
type reader struct {
	opts      Options
	source    *problem.Source
	dir       string // what relative paths start from; empty: unknown
	workspace string // the folder that is open in the editor whose file this is
	file      *File

	strict bool // unknown keys are mistakes
	quiet  bool // nothing is filled in
	off    bool // this server of a client is disabled, so that its mistakes stop nobody
	dry    bool // nobody is asked for inputs: what needs one passes
	asked  bool // somebody would have been asked
	refs   references

	inputs  map[string]*Input
	answers map[string]answer

	problems, warnings []problem.Problem
}

func newReader(name string, data []byte, opts Options) *reader {
	r := &reader{opts: opts, source: problem.NewSource(name, data), dir: opts.Dir, inputs: map[string]*Input{}, answers: map[string]answer{}}
	if r.dir == "" {
		if absolute, err := filepath.Abs(filepath.Dir(name)); err == nil {
			r.dir = absolute
		}
	}
	r.workspace = workspaceOf(r.dir)
	r.file = &File{Name: name, Names: NamesAlways}
	return r
}

// workspaceOf is the folder that a client's own folder stands in: project/.vscode belongs to project.
func workspaceOf(dir string) string {
	switch filepath.Base(dir) {
	case ".vscode", ".cursor", ".gemini", ".codex", ".zed", ".roo", ".kiro", ".windsurf", ".codeium", ".github", ".claude":
		return filepath.Dir(dir)
	}
	return dir
}

// readable looks at the bytes: what is no text is not parsed. A byte order mark, which Windows editors write, is taken off.
func (r *reader) readable() bool {
	data := r.source.Text
	switch {
	case len(data) > largest:
		r.problem(problem.Pos{}, fmt.Sprintf("the file has more than %d MiB", largest>>20), "is it the right one?")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		r.problem(problem.Pos{}, "the file is UTF-16", "save it as UTF-8")
	default:
		r.source = problem.NewSource(r.source.Name, bytes.TrimPrefix(data, []byte("\ufeff")))
		if at := invalidUTF8(r.source.Text); at >= 0 {
			r.problem(r.source.At(at), "the file is no UTF-8 text", "save it as UTF-8")
		}
	}
	return len(r.problems) == 0
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// read recognises the format and goes through the file.
func (r *reader) read() {
	if len(bytes.TrimSpace(r.source.Text)) == 0 {
		r.problem(problem.Pos{Line: 1, Column: 1}, "the file is empty", "write servers: and below it a name with a command or a url")
		return
	}
	var known secret.Known
	r.source.Hide = func(text string) (parts [][2]int) {
		for _, at := range known.Find(text) {
			parts = append(parts, [2]int{at.Start, at.End})
		}
		return parts
	}
	syntax := syntaxOf(r.source)
	root, problems := syntax.parse(r.source)
	known = secretsOf(root)
	r.problems = append(r.problems, problems...)
	if root == nil {
		if len(problems) == 0 {
			r.problem(problem.Pos{Line: 1, Column: 1}, "the file is empty", "write servers: and below it a name with a command or a url")
		}
		return
	}
	format, where := recognise(syntax, root)
	if format == Unknown {
		r.refuse(root)
		return
	}
	r.file.Format = format
	if format == Outlive {
		r.readOutlive(root)
		return
	}
	r.readClient(format, where, root)
}

func (r *reader) problem(at problem.Pos, message, hint string) {
	if r.off {
		r.warn(at, message, hint)
		return
	}
	r.problems = append(r.problems, problem.Problem{Pos: at, Message: message, Hint: hint})
}

func (r *reader) warn(at problem.Pos, message, hint string) {
	r.warnings = append(r.warnings, problem.Problem{Pos: at, Message: message, Hint: hint})
}

// wrong tells a problem about a node, which then is taken as not given.
func (r *reader) wrong(n *node, message, hint string) {
	n.bad = true
	r.problem(n.pos, message, hint)
}

// plainError is an error of the file system without the path, which stands beside it already.
func plainError(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, wholefile.ErrIrregular):
		return "it is no ordinary file, but a device, a pipe or a directory"
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

// absolute makes a path complete: ~/ is the user's folder, and the rest starts at the file's.
func (r *reader) absolute(path string) string {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); ok && r.opts.Home != "" {
		return filepath.Join(r.opts.Home, rest)
	}
	if filepath.IsAbs(path) || r.dir == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(r.dir, path)
}

// texts gives the good entries of a list, or the one text that stands for a list.
func texts(n *node) []string {
	if n == nil || n.bad {
		return nil
	}
	if n.kind != list {
		return []string{n.value}
	}
	var out []string
	for _, item := range n.items {
		if !item.bad {
			out = append(out, item.value)
		}
	}
	return out
}

// dict gives the good entries of an object, or nil for an empty one.
func dict(n *node) map[string]string {
	if n == nil || n.bad || len(n.fields) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, f := range n.fields {
		if !f.value.bad {
			out[f.key] = f.value.value
		}
	}
	return out
}

// value gives a text, or "" for one that is missing or bad.
func (n *node) textOf(key string) string {
	if v := n.good(key); v != nil {
		return v.value
	}
	return ""
}

// good gives a member that was given and is right, or nil.
func (n *node) good(key string) *node {
	if n == nil || n.bad {
		return nil
	}
	if v := n.get(key); v != nil && !v.bad && v.kind != null {
		return v
	}
	return nil
}

// isTrue reports a member that is true.
func (n *node) isTrue(key string) bool { return n.textOf(key) == "true" }

// countOf gives a number that was checked, or 0.
func (n *node) countOf(key string) int {
	if v := n.good(key); v != nil {
		return max(0, asInt(v))
	}
	return 0
}

// given reports whether one of the keys has a value, right or wrong.
func (n *node) given(keys ...string) bool { return slices.ContainsFunc(keys, n.has) }
