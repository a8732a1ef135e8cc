package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/view/control"
)

// stateDir is outlive's state directory: $XDG_STATE_HOME/outlive, or the system's usual place.
func stateDir() string {
	if dir := os.Getenv("OUTLIVE_STATE_HOME"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "outlive")
	}
	return usualStateDir()
}

// usualStateDir is the state directory without such a variable.
func usualStateDir() string {
	if dir := os.Getenv("LOCALAPPDATA"); dir != "" && filepath.Separator == '\\' {
		return filepath.Join(dir, "outlive")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return homelessDir()
	}
	return filepath.Join(home, ".local", "state", "outlive")
}

// homelessDir is the state directory of a user without a home, below a directory that everybody can write to.
func homelessDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("outlive-state-%d", os.Getuid()))
}

// checkHomeless refuses a state directory of another user, since its content decides what is started and shown.
func checkHomeless() error {
	if stateDir() != homelessDir() {
		return nil
	}
	if err := control.MakeDir(homelessDir()); err != nil {
		return fail(exitFailure, "state directory: %w; set HOME, or OUTLIVE_STATE_HOME to a directory of your own", err)
	}
	return nil
}

// socketDir is where running proxies can be reached: $XDG_RUNTIME_DIR/outlive, or under the state directory.
func socketDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "outlive")
	}
	return filepath.Join(stateDir(), "run")
}

// socketDirs are where running proxies may listen. A client need not hand its servers the variables that a shell has
// (Codex keeps XDG_RUNTIME_DIR and XDG_STATE_HOME to itself), and a shell need not have those of a desktop.
func socketDirs() []string {
	dirs := []string{socketDir(), filepath.Join(stateDir(), "run"), filepath.Join(usualStateDir(), "run")}
	if uid := os.Getuid(); uid >= 0 && os.Getenv("XDG_RUNTIME_DIR") == "" {
		dirs = append(dirs, filepath.Join("/run/user", strconv.Itoa(uid), "outlive")) // where systemd puts it
	}
	return dirs
}

// configDir is where outlive looks for its configuration: $XDG_CONFIG_HOME/outlive, or the system's usual place.
func configDir() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "outlive")
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return filepath.Join(stateDir(), "config")
	}
	return filepath.Join(dir, "outlive")
}
