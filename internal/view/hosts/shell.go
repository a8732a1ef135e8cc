package hosts

import "strings"

// places are where outlive often is, and where the shell of a command over ssh does not look: no file of the user's that sets
// PATH is read there.
const places = `$HOME/.local/bin:$HOME/bin:$HOME/go/bin:/usr/local/bin:/opt/homebrew/bin`

// script is the command that a host gets: its first line of output is the version, and all else that of outlive ARGS. It leaves
// with 127 where there is no such program. It is one for sh inside of one for the user's own shell, whichever that is.
func script(program string, args []string) string {
	return found(program, args, `"$1" --version && exec "$@"`)
}

// found is a script that looks for outlive. Then it does something with the words of the command, its arguments.
func found(program string, args []string, then string) string {
	words := []string{"outlive"}
	if program != "" {
		words[0] = quote(program)
	}
	for _, a := range args {
		words = append(words, quote(a))
	}
	// The words are in an argument of sh, not in its script, so that they are quoted once, for the user's shell.
	const run = `PATH="$PATH:` + places + `"; export PATH; case "$1" in "~/"*) p="$HOME/${1#"~/"}"; shift; set -- "$p" "$@";; esac; ` +
		`command -v "$1" >/dev/null 2>&1 || exit 127; `
	return "exec sh -c " + quote(run+then) + " outlive " + strings.Join(words, " ")
}

// quote makes one word for a shell: that of sh, csh and fish alike. Inside of single quotes fish acts upon a backslash.
func quote(text string) string {
	if text == "" {
		return "''"
	}
	var b strings.Builder
	open := false
	set := func(to bool) {
		if open != to {
			b.WriteByte('\'')
			open = to
		}
	}
	for _, r := range text {
		if r == '\'' || r == '\\' {
			set(false)
			b.WriteByte('\\')
		} else {
			set(true)
		}
		b.WriteRune(r)
	}
	set(false)
	return b.String()
}
