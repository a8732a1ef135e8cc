package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Kind is who keeps a service running.
type Kind string

// The kinds.
const (
	ForSystemd Kind = "systemd"
	ForLaunchd Kind = "launchd"
	ForWindows Kind = "windows"
)

// Place is where a service's file is, and what to do with it.
type Place struct {
	Path string
	// Enable starts the service now and at every login, Disable undoes both. Each is a list of commands.
	Enable, Disable [][]string
	// Renew is Enable where the system has the service with another file: what runs is started anew with this one. Empty: Enable.
	Renew [][]string
	// Stop stops what still runs when its file is gone.
	Stop [][]string
	// Known is a command that fails when the system does not know the service. Empty: it knows what has a file.
	Known []string
	// Leaves is a command of those above after which the system may know the service until it has ended. InProgress is its status then.
	Leaves     []string
	InProgress int
	links      []string // what [Place.Remove] takes away besides
	// Remark is what a person should know besides. "": nothing.
	Remark string
}

// PlaceOf says where a service's file belongs. dir is the folder of the user's systemd units, of the user's launch agents, or
// one of ours for tasks; uid is the user's number, for launchd.
func PlaceOf(kind Kind, name, dir string, uid int) Place {
	unit := prefix + name
	switch kind {
	case ForSystemd:
		return Place{
			Path:    filepath.Join(dir, unit+".service"),
			Enable:  [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", unit + ".service"}},
			Disable: [][]string{{"systemctl", "--user", "disable", "--now", unit + ".service"}},
			// "enable --now" leaves what runs as it is.
			Renew:  [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", unit + ".service"}, {"systemctl", "--user", "restart", unit + ".service"}},
			Stop:   [][]string{{"systemctl", "--user", "stop", unit + ".service"}, {"systemctl", "--user", "daemon-reload"}},
			links:  []string{filepath.Join(dir, "default.target.wants", unit+".service")}, // systemctl disable needs the file for that
			Remark: "It runs while you are logged in; \"loginctl enable-linger\" has it run always.",
		}
	case ForLaunchd:
		path, target := filepath.Join(dir, LaunchdLabel(name)+".plist"), fmt.Sprintf("gui/%d/%s", uid, LaunchdLabel(name))
		in, out := [][]string{{"launchctl", "bootstrap", fmt.Sprintf("gui/%d", uid), path}}, [][]string{{"launchctl", "bootout", target}}
		return Place{
			Path:    path,
			Enable:  in,
			Renew:   slices.Concat(out, in),
			Disable: out, Stop: out, Known: []string{"launchctl", "print", target}, Leaves: out[0], InProgress: 36,
		}
	}
	path := filepath.Join(dir, unit+".xml")
	out := [][]string{{"schtasks", "/End", "/TN", unit}, {"schtasks", "/Delete", "/F", "/TN", unit}}
	return Place{
		Path:    path,
		Enable:  [][]string{{"schtasks", "/Create", "/F", "/TN", unit, "/XML", path}, {"schtasks", "/Run", "/TN", unit}},
		Disable: out, Stop: out, Known: []string{"schtasks", "/Query", "/TN", unit},
		Remark: "What runs already keeps its old flags: \"schtasks /End /TN " + unit + "\" ends it before the next start.",
	}
}

// Write puts a service's file into its place. Only the user can read it: its environment may hold secrets. changed is false
// when the same text was there already.
func (p Place) Write(text []byte) (changed bool, err error) {
	if old, err := os.ReadFile(p.Path); err == nil && string(old) == string(text) {
		return false, nil
	}
	if err = os.MkdirAll(filepath.Dir(p.Path), 0o755); err == nil {
		err = atomicfile.Write(p.Path, text)
	}
	if err != nil {
		return false, fmt.Errorf("write the service: %w", err)
	}
	return true, nil
}

// Remove takes a service's file away. there is false when there was none.
func (p Place) Remove() (there bool, err error) {
	for _, path := range append(slices.Clone(p.links), p.Path) {
		err := os.Remove(path)
		if there = err == nil; !there && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove the service: %w", err)
		}
	}
	return there, nil
}
