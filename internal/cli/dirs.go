package cli

import (
	"os"
	"path/filepath"
)

// stateDir is where outlive keeps what outlasts a run: $XDG_STATE_HOME/outlive, or the system's usual place.
func stateDir() string {
	if dir := os.Getenv("OUTLIVE_STATE_HOME"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "outlive")
	}
	if dir := os.Getenv("LOCALAPPDATA"); dir != "" && filepath.Separator == '\\' {
		return filepath.Join(dir, "outlive")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "outlive-state")
	}
	return filepath.Join(home, ".local", "state", "outlive")
}

// socketDir is where running proxies can be reached: $XDG_RUNTIME_DIR/outlive, or under the state directory.
func socketDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "outlive")
	}
	return filepath.Join(stateDir(), "run")
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
