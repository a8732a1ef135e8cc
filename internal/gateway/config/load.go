package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/files/tree"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// largest is the maximum size of a configuration in bytes. A whole ~/.claude.json with its history has to fit.
const largest = 16 << 20

// Load reads a configuration. Mistakes in it are returned together as [*fileerror.Problems]; if the file cannot be
// read, the error is that of package os.
func Load(path string, opts Options) (*File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	f, err := os.Open(absolute)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	// It may be a shell's pipe. Just enough is read to notice that it is too long.
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	_ = f.Close() // nothing was written; on Windows nobody could replace the file meanwhile
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

// Parse reads a configuration from memory. name is its name in messages; its extension and its folder (.vscode,
// .cursor) also help to recognise the format. Relative paths in it start at opts.Dir, or at the folder of name.
func Parse(name string, data []byte, opts Options) (*File, error) {
	r := newReader(name, data, opts)
	r.read()
	return r.result()
}

// result returns the file, or its mistakes.
func (r *reader) result() (*File, error) {
	if err := r.source.Problems(r.Problems); err != nil {
		return nil, err
	}
	r.file.Warnings = fileerror.InOrder(r.Warnings)
	r.file.source = r.source
	return r.file, nil
}

// conceal hides secrets in quotes of the file.
func (r *reader) conceal(known *secret.Known) {
	r.source.Hide = func(text string) []secret.Span { return known.Find(text) }
}

// reader is the state of reading one file.
type reader struct {
	schema.Walk
	opts      Options
	source    *fileerror.Source
	dir       string // base of relative paths; empty: unknown
	workspace string // the editor's open folder, if it is an editor's file
	file      *File

	quiet  bool // ${…} references are not replaced
	refs   references
	filled map[*tree.Node]bool
	inputs map[string]*input // by id
}

func newReader(name string, data []byte, opts Options) *reader {
	if opts.ReadFile == nil {
		opts.ReadFile = atomicfile.Read
	}
	if opts.Lookup == nil {
		opts.Lookup = func(string) (string, bool) { return "", false }
	}
	r := &reader{opts: opts, source: fileerror.NewSource(name, data), dir: opts.Dir,
		filled: map[*tree.Node]bool{}, inputs: map[string]*input{}}
	r.Manner, r.Habits, r.Fill = schema.Foreign, habits, r.fill
	if r.dir == "" {
		if absolute, err := filepath.Abs(filepath.Dir(name)); err == nil {
			r.dir = absolute
		}
	}
	r.workspace = workspaceOf(r.dir)
	r.file = &File{Name: name, Names: catalog.Always}
	return r
}

// workspaceOf returns the project's folder for a client's folder inside it: for project/.vscode it is project.
func workspaceOf(dir string) string {
	switch filepath.Base(dir) {
	case ".vscode", ".cursor", ".gemini", ".codex", ".zed", ".roo", ".kiro", ".windsurf", ".codeium", ".github", ".claude":
		return filepath.Dir(dir)
	}
	return dir
}

// readable rejects content that is not text, and removes the byte order mark that Windows editors write.
func (r *reader) readable() bool {
	data := r.source.Text
	switch {
	case len(data) > largest:
		r.Problem(fileerror.Pos{}, fmt.Sprintf("the file has more than %d MiB", largest>>20), "is it the right one?")
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		r.Problem(fileerror.Pos{}, "the file is UTF-16", "save it as UTF-8")
	default:
		r.source = fileerror.NewSource(r.source.Name, bytes.TrimPrefix(data, []byte("\ufeff")))
		if at := invalidUTF8(r.source.Text); at >= 0 {
			r.Problem(r.source.At(at), "the file is not UTF-8 text", "save it as UTF-8")
		}
	}
	return len(r.Problems) == 0
}

// invalidUTF8 is where a text stops being UTF-8, or -1.
func invalidUTF8(text []byte) int {
	for i, c := range string(text) {
		if c == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte(string(utf8.RuneError))) {
			return i
		}
	}
	return -1
}

// read recognises the format and reads the file's content.
func (r *reader) read() {
	if !r.readable() {
		return
	}
	if len(bytes.TrimSpace(r.source.Text)) == 0 {
		r.Problem(fileerror.Pos{Line: 1, Column: 1}, "the file is empty", "write servers: and below it a name with a command or a url")
		return
	}
	var known secret.Known
	r.conceal(&known)
	syntax := syntaxOf(r.source)
	root, problems := tree.Read(syntax, r.source)
	known = secretsOf(root)
	r.Problems = append(r.Problems, problems...)
	if root == nil {
		if len(problems) == 0 {
			r.Problem(fileerror.Pos{Line: 1, Column: 1}, "the file is empty", "write servers: and below it a name with a command or a url")
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
	if format == MCPServers && syntax == tree.YAML {
		for _, f := range ownKeys(root) {
			r.Warn(f.KeyPos, f.Key+" has no effect beside mcpServers", "write the servers below servers")
		}
	}
	r.readClient(format, where, root)
}

// plainError is the text of a file system error without the path, which the message has already.
func plainError(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, atomicfile.ErrIrregular):
		return "it is not a regular file, but a device, a pipe or a directory"
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

// absolute makes a path absolute: ~/ is the user's home folder, other paths start at the file's folder.
func (r *reader) absolute(path string) string {
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); ok && r.opts.Home != "" {
		return filepath.Join(r.opts.Home, rest)
	}
	if filepath.IsAbs(path) || r.dir == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(r.dir, path)
}
