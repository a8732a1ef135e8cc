package launcher

import (
	"fmt"
	"os"
	"unicode/utf8"
)

// Command is the real command that a launcher started. It can be encoded as JSON, which then contains the variables
// that the launcher set. These may include a password from the launcher's own configuration, so the file should be
// readable by its owner only.
type Command struct {
	Kind    Kind     `json:"kind"`
	Asked   []string `json:"asked"`   // the launcher's command line, as given
	Version Version  `json:"version"` // whether the launcher itself would start the same version again

	Argv []string    `json:"argv"` // Argv[0] is the absolute path to start, which leads to Exe
	Exe  string      `json:"exe"`  // the executable file, with symbolic links resolved
	Dir  string      `json:"dir"`  // working directory
	Env  Environment `json:"env"`  // what the launcher changed

	Stamps []FileStamp `json:"stamps"` // the files that determine the version
}

// Fresh reports whether the command may be started instead of its launcher: see [Command.Stale].
func (c Command) Fresh() bool { return c.Stale() == "" }

// Stale says why the launcher has to be used again, or returns "". It checks only the file system, some twenty times.
// A command of version [Latest] is not stale, because a server that crashed should be restarted unchanged; a caller
// that wants the newest version, as at the beginning of a run, checks Version.
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

// usable rejects text that JSON cannot represent byte for byte.
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
