package agentcli

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Kind is the type of an agent: one of the agent CLIs in the table, or another kind of a registry.
type Kind string

// CLI describes an agent CLI: a row of the table. The zero value of each field is explained in its comment.
type CLI struct {
	// Kind is its name in registries, in hooks and on the command line; it is the program's name.
	Kind Kind
	// Title is what people call it.
	Title string

	// program is how its processes are found. Zero: they are not, only those that are declared.
	program
	// Place is where it keeps its files.
	Place Place
	// files reads them. nil: they are not read, and its processes are not looked for.
	files func(source) files
	// told reads an error of its output. nil, or not ok: by the words that all have in common.
	told func(text string, at time.Time) (f Failure, ok bool)

	// SilentUntilPrompted says that it writes no session before its first prompt. false: its session shows at once.
	SilentUntilPrompted bool
	// TellsStatus says that a session's own file shows within a second whether it works or waits. false: a dialog counts
	// as answered when its transcript continues.
	TellsStatus bool
	// Shell is the tool that runs commands, if its files do not tell one that waits for a permission from one that runs. "": they
	// do, or the title does.
	Shell string
	// EndsOnSIGINT says that a SIGINT ends it: only a key in its terminal ends just a turn. false: a SIGINT is tried.
	EndsOnSIGINT bool
	// ErrorExits are exit statuses of errors that a restart does not fix, LimitExits those of a limit of its own. None:
	// every status but 0 is a crash.
	ErrorExits, LimitExits []int
	// ownLimit matches how its output says that it has ended at a limit of its own, if no exit status does. nil: one does, or
	// it is not known.
	ownLimit *lazyregexp.Pattern

	// Resume is the command that continues a session without a terminal, as in a registry. "": none is suggested.
	Resume string
	// Patience makes an unattended one wait for temporary failures. Zero: no change.
	Patience Patience
	// SessionVariables are environment variables that it sets for its children, and that belong to one of its sessions:
	// a child of several sessions must not have them. None: it has none, or they are not known.
	SessionVariables []string
	// Signs are how its terminal's title shows its state. Zero: it does not.
	Signs Signs
	// Hooks are its hooks. nil: it has none, or they are not known.
	Hooks *Hooks
}

// Place is where a CLI keeps its files: a folder, or the one file that a variable names.
type Place struct {
	// Variables name the whole folder in the environment, the first that is set. None: nothing moves it.
	Variables []string
	// Base is the folder that contains it, below the user's home; "": the home itself. BaseVariable is a variable
	// that names another one; "": none.
	Base, BaseVariable string
	// Folder is its name.
	Folder string
	// FileVariable names a file in the folder, or anywhere by an absolute path, that is then the place. "": nothing does.
	FileVariable string
}

// In is the place, by the user's home directory and the environment.
func (p Place) In(home string, env func(name string) string) string {
	if p.FileVariable == "" {
		return p.folder(home, env)
	}
	file := env(p.FileVariable)
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(p.folder(home, env), file)
}

// folder is the place without a file.
func (p Place) folder(home string, env func(name string) string) string {
	for _, name := range p.Variables {
		if dir := env(name); dir != "" {
			return dir
		}
	}
	if p.BaseVariable != "" {
		if dir := env(p.BaseVariable); dir != "" {
			return filepath.Join(dir, p.Folder)
		}
	}
	return filepath.Join(home, filepath.FromSlash(p.Base), p.Folder)
}

// Patience is how a CLI is made to ask its model for longer than it does by itself.
type Patience struct {
	// Variable with Value in its environment does. "": no variable does.
	Variable, Value string
	// Unless is a variable by which its owner has chosen otherwise.
	Unless string
	// Command adds the arguments with that effect to a command that starts it; place is where its files are. nil:
	// there are no such arguments.
	Command func(command []string, place string) []string
}

// Signs are what the title of a CLI's terminal begins with.
type Signs struct {
	// Busy, Idle and Waiting are single characters, alone or followed by a space.
	Busy, Idle, Waiting string
	// Quiet says that Waiting is shown, too, while a command runs that has written nothing for a while.
	Quiet bool
	// Spins says that the title begins with a Braille pattern while it is busy, followed by the title that it has at
	// rest.
	Spins bool
	// Alerts are whole beginnings of a title that asks for a human.
	Alerts []string
}

// Hooks are how a CLI's hooks are set up.
type Hooks struct {
	// PowerShell says that on Windows PowerShell runs them, and not cmd or bash.
	PowerShell bool
	// Unit is the unit of timeouts in its settings.
	Unit time.Duration
	// Off is the member of its settings that switches all hooks off, with its value. None: there is none.
	Off      []string
	OffValue string
	// File is the name of its settings in its [Place]; Local is their name in a project, "" when it is the same.
	File, Local string
	// Events are those to receive. [PermissionRequest] among them lets a hook decide.
	Events []Since
	// ReadOnly are tools that only read files, which a user may allow in advance. Tools with network access are
	// excluded, since they could send secrets. None: nothing can be allowed in advance.
	ReadOnly []string
	// Trust is what the user must do before new hooks run. "": nothing.
	Trust string
}

// PermissionRequest is the event at which a CLI lets a hook decide.
const PermissionRequest = "PermissionRequest"

// Version is that of a CLI: major, minor, patch.
type Version [3]int

// String is the usual form.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool { return slices.Compare(v[:], w[:]) < 0 }

// Since is an event, and the first version that has it. A settings file that names an event the CLI does not know was
// ignored as a whole by Claude Code before 2.1.122.
type Since struct {
	Name    string
	Version Version
}

// CLIs are the agent CLIs, in the order that documentation shows them in.
func CLIs() []CLI { return table }

// Of is the row of a kind; the zero one for a kind that is no CLI's.
func Of(kind Kind) CLI {
	for i := range table {
		if table[i].Kind == kind {
			return table[i]
		}
	}
	return CLI{}
}

// Known reports whether its processes and sessions are known by themselves, without a declaration.
func (c CLI) Known() bool { return c.files != nil }

// OwnLimit is how the last line of its output, or the error that this names, says that it has ended at a limit of its own.
// "": it does not.
func (c CLI) OwnLimit(text string) string {
	if c.ownLimit == nil {
		return ""
	}
	return c.ownLimit.FindString(text)
}

// Titles are what people call the CLIs for which a field is set, in the table's order.
func Titles(set func(CLI) bool) []string {
	var titles []string
	for _, c := range table {
		if set(c) {
			titles = append(titles, c.Title)
		}
	}
	return titles
}

// Places are where the CLIs keep their files, by kind.
type Places map[Kind]string

// DefaultPlaces are the places by the home directory and by the environment variables with which they are moved. env gives
// a variable's value.
func DefaultPlaces(home string, env func(name string) string) Places {
	places := Places{}
	for _, c := range table {
		if c.files != nil {
			places[c.Kind] = c.Place.In(home, env)
		}
	}
	return places
}

// SessionVariables are the environment variables that belong to one session of an agent CLI.
func SessionVariables() (names []string) {
	for _, c := range table {
		names = append(names, c.SessionVariables...)
	}
	return names
}

// Variables are the environment variables by which the places are moved.
func Variables() []string {
	var names []string
	for _, c := range table {
		if c.files != nil {
			names = append(names, c.Place.moves()...)
		}
	}
	return names
}

// moves are the variables that move the place.
func (p Place) moves() []string {
	names := slices.Concat(p.Variables, []string{p.BaseVariable, p.FileVariable})
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Moved is what of an environment moves the place, as NAME=value; none: nothing does.
func (p Place) Moved(env func(name string) string) (settings []string) {
	for _, name := range p.moves() {
		if value := env(name); value != "" {
			settings = append(settings, name+"="+value)
		}
	}
	return settings
}
