package launcher

import (
	"fmt"
	"os"
	"unicode/utf8"
)

// Command is what a launcher started in the end. It can be kept as JSON; it then holds the variables that the launcher
// set, which may include a password from the launcher's own configuration, so the file is for its owner's eyes only.
type Command struct {
	Kind    Kind     `json:"kind"`
	Asked   []string `json:"asked"`   // the launcher's command line, as it was given
	Version Version  `json:"version"` // whether the launcher itself would start the same version again

	Argv []string    `json:"argv"` // Argv[0] is the absolute path to start, which leads to Exe
	Exe  string      `json:"exe"`  // the executable file, symbolic links followed
	Dir  string      `json:"dir"`  // working directory
	Env  Environment `json:"env"`  // what the launcher changed

	Stamps []FileStamp `json:"stamps"` // the files that tell which version it is
}

// Fresh tells whether the command may be started in place of its launcher: see [Command.Stale].
func (c Command) Fresh() bool { return c.Stale() == "" }

// Stale says why the launcher has to be asked again, "" if it has not. It asks the file system only, some twenty times.
// A command of version [Latest] is not stale, since a server that died is wanted back as it was; a caller that wants the
// newest, as at the beginning of a run, looks at Version.
func (c Command) Stale() string {
	if len(c.Argv) == 0 {
		return "no command is known"
	}
	if c.Version == Moving {
		return "its version is to be looked up at each start"
	}
	exe, err := os.Stat(c.Exe)
	if err != nil || !exe.Mode().IsRegular() {
		return c.Exe + " is gone"
	}
	if path, err := os.Stat(c.Argv[0]); err != nil || !os.SameFile(path, exe) {
		return c.Argv[0] + " leads elsewhere now"
	}
	if dir, err := os.Stat(c.Dir); err != nil || !dir.IsDir() {
		return c.Dir + " is gone"
	}
	for _, s := range c.Stamps {
		if stamp(s.Path) != s {
			return s.Path + " has changed"
		}
	}
	return ""
}

// usable refuses what JSON could not keep byte for byte.
func (c Command) usable() error {
	for _, list := range [][]string{c.Asked, c.Argv, c.Env.Set, c.Env.Unset, c.Env.Before, {c.Exe, c.Dir}} {
		for _, s := range list {
			if !utf8.ValidString(s) {
				return fmt.Errorf("%q is not UTF-8: %w", s, ErrUnusable)
			}
		}
	}
	return nil
}
