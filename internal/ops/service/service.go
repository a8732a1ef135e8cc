package service

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Service is a command that is to be kept running.
type Service struct {
	// Name is the service's, such as "monitor": letters, digits and dashes.
	Name string
	// About is what it is for, in a few words.
	About string
	// Command is the program's absolute path and its arguments.
	Command []string
	// Environ is set for it, as NAME=value.
	Environ []string
	// EnvironFile is a file of such lines, read if it is there; systemd only. "": none.
	EnvironFile string
	// Log is the file for stdout and stderr where the system keeps none; launchd only. "": none.
	Log string
	// Notifies says that the program speaks to systemd ([Notifier]): it is ready when it says so.
	Notifies bool
	// Watchdog is how long the program may be silent before systemd starts it again. 0: for ever. It needs Notifies.
	Watchdog time.Duration
	// Keeps says that what the program has started lives on when it ends, is stopped or is started again.
	Keeps bool
}

// prefix is before a service's name wherever many programs' services are side by side.
const prefix = "outlive-"

func (s Service) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("service %q: %s: no service can be made of it", s.Name, fmt.Sprintf(format, args...))
	}
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
		return bad("a name has letters, digits and dashes")
	}
	if len(s.Command) == 0 || !absolute(s.Command[0]) {
		return bad("the program's path must be absolute")
	}
	texts := append([]string{s.About, s.EnvironFile, s.Log}, s.Command...)
	for _, text := range append(texts, s.Environ...) {
		if strings.ContainsFunc(text, func(c rune) bool {
			return c < ' ' && c != '\t' || c == 0x7f || c == '\uFFFD' || c == '\uFFFE' || c == '\uFFFF'
		}) {
			return bad("%q has a character that a service file cannot contain", text)
		}
	}
	for _, kv := range s.Environ {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" {
			return bad("%q is not NAME=VALUE", kv)
		}
	}
	return nil
}

// absolute takes every system's paths: a file can be printed for another one.
func absolute(path string) bool {
	drive := len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	return filepath.IsAbs(path) || strings.HasPrefix(path, "/") || drive
}
