package batchfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrArgument is wrapped by the errors about arguments that no batch file can get.
var ErrArgument = errors.New("not possible as an argument of a batch file")

// Is reports whether a program is a batch file, by its name as the system does.
func Is(path string) bool {
	ext := filepath.Ext(strings.TrimRight(path, ". ")) // which the system ignores, too
	return strings.EqualFold(ext, ".cmd") || strings.EqualFold(ext, ".bat")
}

// Line is the command line for cmd.exe that runs the batch file at path with the arguments. The batch file, and a program that it
// passes %* on to, get them as they are. A line break or a NUL in an argument is an error that wraps [ErrArgument].
func Line(path string, args []string) (string, error) {
	if strings.ContainsAny(path, "\"\r\n\x00") || strings.HasSuffix(path, `\`) {
		return "", fmt.Errorf("%w: %q", ErrArgument, path)
	}
	var b strings.Builder
	// With its extensions cmd knows the substrings that keep % from being replaced; /v:off leaves ! alone, and /d leaves
	// out commands of the registry. It removes the first and the last quote of what follows /c.
	b.WriteString(`cmd.exe /d /e:ON /v:OFF /c ""` + distracted(path) + `"`)
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("%w: line break or NUL in number %d", ErrArgument, i+1)
		}
		b.WriteByte(' ')
		appendArgument(&b, arg)
	}
	b.WriteByte('"')
	return b.String(), nil
}

// appendArgument quotes for cmd, which knows no escapes in quotes, and for the C library behind it, which reads "" in quotes
// as one, and backslashes before a quote in pairs.
func appendArgument(b *strings.Builder, arg string) {
	if arg != "" && !strings.ContainsFunc(arg, special) && !strings.HasSuffix(arg, `\`) {
		b.WriteString(arg)
		return
	}
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(arg) {
		switch c {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes) + `"`)
			slashes = 0
		case '%':
			b.WriteString(noVariable)
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, slashes) + `"`)
}

// noVariable before a % keeps the text behind it from being taken for a variable's name: cmd reads it as a % and an empty part of
// %cd%, which always exists.
const noVariable = `%%cd:~,`

func distracted(s string) string { return strings.ReplaceAll(s, "%", noVariable+"%") }

// special reports whether c has to be in quotes: whatever is not known to be harmless.
func special(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c >= 0xa0:
		return false
	}
	return !strings.ContainsRune(`#$*+-./:?@\_`, c)
}
