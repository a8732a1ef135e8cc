package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// references says which ${…} references a format has. Clients differ: a reference in one is plain text in another.
type references struct {
	none   bool // no reference is replaced
	strict bool // outlive.yaml: an unknown ${…} and an unset variable are mistakes; $${ is a plain ${
	bare   bool // ${NAME} and ${NAME:-default} are environment variables (Claude Code, Gemini)
	dollar bool // $NAME is an environment variable, too (Gemini)
}

// mostNested is how deep references may be nested in defaults: ${env:A:-${env:B:-…}}.
const mostNested = 10

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	leadingName  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*`)
)

// fill replaces the references in a text, once: inserted values are not searched for references. It reports whether
// the value is known.
func (r *reader) fill(n *tree.Node) bool {
	if r.quiet {
		return n.Kind != tree.Text || !strings.Contains(n.Raw, "${")
	}
	if !r.filled[n] && !n.Bad && !r.refs.none && strings.Contains(n.Raw, "$") {
		r.filled[n] = true
		value, ok := r.replaced(n, n.Raw, 0)
		n.Value, n.Bad = value, !ok
	}
	return true
}

// replaced replaces the references in s, a part of n's text. It returns false after reporting a problem.
func (r *reader) replaced(n *tree.Node, s string, depth int) (string, bool) {
	var out strings.Builder
	good := true
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			out.WriteString(s)
			return out.String(), good
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch name := leadingName.FindString(s[1:]); {
		case r.refs.strict && strings.HasPrefix(s, "$${"):
			out.WriteString("${")
			s = s[len("$${"):]
		case strings.HasPrefix(s, "${"):
			end := closing(s)
			if end < 0 {
				if r.refs.strict {
					r.Problem(r.within(n, s), "${ without }", "close it, or write $${ for the characters themselves")
					good = false
				}
				out.WriteString(s)
				return out.String(), good
			}
			value, ok := r.reference(n, s[:end+1], depth)
			out.WriteString(value)
			good = good && ok
			s = s[end+1:]
		case r.refs.dollar && name != "":
			value, _ := r.variable(n, "$"+name, name, "", false, true, depth)
			out.WriteString(value)
			s = s[1+len(name):]
		default:
			out.WriteByte('$')
			s = s[1:]
		}
	}
}

// closing returns the index of the } that ends the ${ at the start of s, skipping nested ones, or -1.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// within returns the position of part in the file, or that of n if part is not found literally on n's line.
func (r *reader) within(n *tree.Node, part string) fileerror.Pos {
	line := []rune(r.source.Line(n.Pos.Line))
	if n.Pos.Column < 1 || n.Pos.Column > len(line) {
		return n.Pos
	}
	part, _, _ = strings.Cut(part, "\n")
	rest := string(line[n.Pos.Column-1:])
	if i := strings.Index(rest, part); i >= 0 && part != "" {
		return fileerror.Pos{Line: n.Pos.Line, Column: n.Pos.Column + utf8.RuneCountInString(rest[:i])}
	}
	return n.Pos
}

// reference returns the value of one ${…}.
func (r *reader) reference(n *tree.Node, ref string, depth int) (string, bool) {
	if depth >= mostNested {
		r.Problem(r.within(n, ref), "references are nested too deeply", "")
		return "", false
	}
	inner := ref[len("${") : len(ref)-1]
	name, fallback, defaulted := strings.Cut(inner, ":-")
	if variable, ok := strings.CutPrefix(name, "env:"); ok && variable != "" {
		return r.variable(n, ref, variable, fallback, defaulted, false, depth)
	}
	if r.refs.bare && variableName.MatchString(name) {
		if value, known := r.place(name); known && !defaulted {
			return value, true
		}
		return r.variable(n, ref, name, fallback, defaulted, true, depth)
	}
	if path, ok := strings.CutPrefix(inner, "file:"); ok && path != "" {
		return r.content(n, ref, path)
	}
	if id, ok := strings.CutPrefix(inner, "input:"); ok && id != "" {
		return r.input(n, ref, id)
	}
	if value, known := r.place(inner); known {
		if value == "" {
			r.Problem(r.within(n, ref), fmt.Sprintf("%s is not known here", ref), "write the path itself")
		}
		return value, value != ""
	}
	return r.unknownReference(n, ref, inner)
}

// variable returns the value of an environment variable. An unset one is only a warning where the client continues
// without it: VS Code and Cursor replace ${env:NAME} by nothing, Claude Code and Gemini leave ${NAME} as it is.
func (r *reader) variable(n *tree.Node, ref, name, fallback string, defaulted, asWritten bool, depth int) (string, bool) {
	value, set := r.opts.Lookup(name)
	switch {
	case set && (value != "" || !defaulted):
		return value, true
	case defaulted:
		return r.replaced(n, fallback, depth+1)
	case r.refs.strict:
		r.Problem(r.within(n, ref), fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("set it, or write a default: ${env:%s:-…}", name))
		return "", false
	case asWritten:
		r.Warn(r.within(n, ref), fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("the server gets %s as it stands", ref))
		return ref, true
	}
	r.Warn(r.within(n, ref), fmt.Sprintf("the environment variable %s is not set", name), "the server gets nothing in its place")
	return "", true
}

// place returns the value of VS Code's variables for folders. known says that there is such a variable; value is ""
// if its folder is not known.
func (r *reader) place(name string) (value string, known bool) {
	switch name {
	case "workspaceFolder", "workspaceRoot":
		return r.workspace, true
	case "workspaceFolderBasename":
		if r.workspace == "" {
			return "", true
		}
		return filepath.Base(r.workspace), true
	case "userHome":
		return r.opts.Home, true
	case "pathSeparator", "/":
		return string(os.PathSeparator), true
	case "cwd":
		return r.dir, true
	}
	return "", false
}

// unknownReference handles a reference that is not known here: a client may know it, or it may be meant for a shell.
func (r *reader) unknownReference(n *tree.Node, ref, inner string) (string, bool) {
	at := r.within(n, ref)
	kind, _, _ := strings.Cut(inner, ":")
	switch {
	case r.refs.strict && variableName.MatchString(kind):
		r.Problem(at, fmt.Sprintf("%s is not a reference", fileerror.Shortened(ref)), fmt.Sprintf("for an environment variable write ${env:%s}, for the characters themselves $%s", kind, fileerror.Shortened(ref)))
		return "", false
	case r.refs.strict:
		r.Problem(at, fmt.Sprintf("%s is not a reference", fileerror.Shortened(ref)), "write ${env:NAME}, ${file:PATH} or ${input:ID}, or $${ for the characters themselves")
		return "", false
	case kind == "command" || kind == "config":
		r.Problem(at, fmt.Sprintf("%s can only be known inside the editor", fileerror.Shortened(ref)), "write the value itself, or use ${input:…}")
		return "", false
	}
	return ref, true
}

// largestSecret is the maximum size of the files of ${file:…} and envFile, in bytes.
const largestSecret = 64 << 10

// content returns a file's content, without the line break at its end that editors add.
func (r *reader) content(n *tree.Node, ref, path string) (string, bool) {
	data, why := r.readSmall(r.absolute(path))
	if why != "" {
		r.Problem(r.within(n, ref), fmt.Sprintf("cannot read %s", fileerror.Shortened(path)), why)
		return "", false
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), true
}

// readSmall reads a small text file, or says why it cannot.
func (r *reader) readSmall(path string) (data []byte, why string) {
	data, err := r.opts.ReadFile(path, largestSecret)
	switch {
	case errors.Is(err, atomicfile.ErrTooLong):
		return nil, fmt.Sprintf("it has more than %d KiB", largestSecret>>10)
	case err != nil:
		return nil, plainError(err)
	case !utf8.Valid(data):
		return nil, "it is not UTF-8 text"
	}
	return data, ""
}

// input is a value that an editor would ask for when it is needed, as in VS Code.
type input struct {
	fallback *tree.Node // its default, before references are replaced; nil: none
	options  []string   // the only valid values, if any
	command  bool       // VS Code would run a command for the value
	pos      fileerror.Pos
	answer   *answer // nil: it was not needed yet
}

// answer is the value of an input; asking is set while its default is filled in, to find cycles.
type answer struct {
	value        string
	good, asking bool
}

// input returns the value of ${input:id}. What is wrong with it is told once.
func (r *reader) input(n *tree.Node, ref, id string) (string, bool) {
	at := r.within(n, ref)
	in := r.inputs[id]
	if in == nil {
		hint := "declare it in inputs"
		if k := suggest(id, slices.Sorted(maps.Keys(r.inputs))); k != "" {
			hint = fmt.Sprintf("did you mean %q?", k)
		}
		r.Problem(at, fmt.Sprintf("there is no input %q", fileerror.Shortened(id)), hint)
		return "", false
	}
	switch {
	case in.answer == nil:
		in.answer = &answer{asking: true}
		*in.answer = r.ask(at, id, in)
	case in.answer.asking:
		r.Problem(at, fmt.Sprintf("the default of input %q needs the input itself", id), "write a default that does not")
	}
	return in.answer.value, in.answer.good
}

// notInVariable is what names of environment variables have an underscore for.
var notInVariable = lazyregexp.New(`[^A-Za-z0-9]`)

// ask takes an input from the environment: no user can be asked, because a client uses stdin.
func (r *reader) ask(at fileerror.Pos, id string, in *input) answer {
	fallback := ""
	if in.fallback != nil {
		r.fill(in.fallback)
		if in.fallback.Bad {
			return answer{}
		}
		fallback = in.fallback.Value
	}
	if in.command {
		r.Problem(in.pos, fmt.Sprintf("the input %q is found out by a command of VS Code", id), "make it a promptString")
		return answer{}
	}
	variable := "OUTLIVE_INPUT_" + strings.ToUpper(notInVariable.ReplaceAllString(id, "_"))
	value, _ := r.opts.Lookup(variable)
	value = cmp.Or(value, fallback)
	switch {
	case value == "":
		r.Problem(at, fmt.Sprintf("the input %q", id), "set "+variable+" to its value")
	case len(in.options) > 0 && !slices.Contains(in.options, value):
		r.Problem(at, fmt.Sprintf("the value of input %q is none of its options", id), "")
	default:
		return answer{value: value, good: true}
	}
	return answer{}
}
