package sharing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Request says which server a run wants.
type Request struct {
	Name    string   `json:"name"`    // of the run
	PID     int      `json:"pid"`     // of the run
	Command []string `json:"command"` // with its arguments
	// Executable is the path that the command was resolved to. It is not compared: the directory and PATH are.
	Executable string    `json:"executable"`
	Dir        string    `json:"dir"`      // absolute
	Env        []string  `json:"env"`      // the server's whole environment, KEY=value, without what belongs to one session of a client
	Settings   []Setting `json:"settings"` // settings that were given for the server
}

// Setting is one setting of a server.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// passing are variables that are ignored when environments are compared. They differ between terminals of one user,
// or change over time, and do not affect a server: the shell's state, the terminal and its window, and the connection
// it came by. Variables that give access to keys, such as SSH_AUTH_SOCK, are not among them: runs with different
// rights do not share.
var passing = map[string]bool{
	"_": true, "PWD": true, "OLDPWD": true, "SHLVL": true, "COLUMNS": true, "LINES": true,
	"TERM": true, "COLORTERM": true, "TERM_PROGRAM": true, "TERM_PROGRAM_VERSION": true, "TERM_SESSION_ID": true, "VTE_VERSION": true,
	"LC_TERMINAL": true, "LC_TERMINAL_VERSION": true, "SHELL_SESSION_ID": true, "XDG_SESSION_ID": true, "GPG_TTY": true,
	"SSH_CLIENT": true, "SSH_CONNECTION": true, "SSH_TTY": true,
	"TMUX": true, "TMUX_PANE": true, "STY": true, "WINDOW": true, "WINDOWID": true, "ZELLIJ_PANE_ID": true, "ZELLIJ_SESSION_NAME": true,
	"ITERM_SESSION_ID": true, "KITTY_WINDOW_ID": true, "KITTY_PID": true, "WEZTERM_PANE": true, "ALACRITTY_WINDOW_ID": true,
	"KONSOLE_DBUS_SESSION": true, "KONSOLE_DBUS_WINDOW": true, "GNOME_TERMINAL_SCREEN": true, "WT_SESSION": true,
}

// environment returns the variables that are compared, by name.
func (r Request) environment() map[string]string {
	env := map[string]string{}
	for _, kv := range r.Env {
		name, value, _ := strings.Cut(kv, "=")
		if !passing[name] {
			env[name] = value
		}
	}
	return env
}

// Key is the same for two requests that are to get the same server.
func (r Request) Key() string {
	text, _ := json.Marshal([]any{r.Command, r.Dir, r.Settings, r.environment()}) // texts only: no error
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Differences returns, for people to read, what keeps two requests with the same command apart: names only, no
// values. nil: the commands differ, or nothing does.
func (r Request) Differences(other Request) (what []string) {
	if !slices.Equal(r.Command, other.Command) {
		return nil
	}
	if r.Dir != other.Dir {
		what = append(what, "directory")
	}
	for _, name := range differing(r.settings(), other.settings()) {
		what = append(what, "--"+name)
	}
	for _, name := range differing(r.environment(), other.environment()) {
		what = append(what, "$"+name)
	}
	return what
}

func (r Request) settings() map[string]string {
	all := map[string]string{}
	for _, s := range r.Settings {
		all[s.Name] = strings.Join(s.Values, "\x00")
	}
	return all
}

// differing returns the names whose values differ, sorted.
func differing(a, b map[string]string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one, inA := a[name]
		other, inB := b[name]
		if inA != inB || one != other {
			names = append(names, name)
		}
	}
	return names
}
