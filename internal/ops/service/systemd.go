package service

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Systemd is a service's unit for systemd's user manager.
//
// It has none of systemd's sandboxes: every option of theirs counts for what the program starts as well, and agents and their
// tools write where their user may, use sudo, and make sandboxes of their own.
func Systemd(s Service) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[Unit]")
	line("Description=%s", specifiers(s.About))
	line("# Restarts without limit: it must not stay down.")
	line("StartLimitIntervalSec=0")
	line("")
	line("[Service]")
	if s.Notifies {
		line("Type=notify")
		line("NotifyAccess=main")
	} else {
		line("Type=exec")
	}
	if s.Notifies && s.Watchdog > 0 {
		line("# The loop pings the watchdog. If it hangs, it is restarted; SIGABRT logs where it hung.")
		line("WatchdogSec=%gs", s.Watchdog.Seconds())
	}
	line("ExecStart=%s", systemdCommand(s.Command))
	for _, kv := range s.Environ {
		line("Environment=%s", systemdQuoted(specifiers(kv)))
	}
	if s.EnvironFile != "" {
		line("EnvironmentFile=-%s", specifiers(s.EnvironFile))
	}
	line("Restart=always")
	line("RestartSec=5s") // steps, which systemd has since 254, would be a warning at every look of an older one
	line("# A wrong command line is not retried. After a crash, too, Go would end with this status: a service has it end by SIGABRT.")
	line("RestartPreventExitStatus=2")
	if s.Keeps {
		line("# Agents keep running when the monitor is stopped or restarted, and the monitor survives one that runs out of memory.")
		line("KillMode=process")
	} else {
		line("# It ends what it has started by itself; what is left after that is killed.")
		line("KillMode=mixed")
	}
	line("OOMPolicy=continue")
	line("TasksMax=infinity")
	line("")
	line("[Install]")
	line("WantedBy=default.target")
	return []byte(b.String()), nil
}

// specifiers keeps systemd from reading % as one of its own.
func specifiers(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// systemdCommand is a command line as systemd splits it again. Variables are not to be filled in.
func systemdCommand(command []string) string {
	var words []string
	for i, word := range command {
		word = specifiers(word)
		if i > 0 { // in the program's path a dollar is one
			word = strings.ReplaceAll(word, "$", "$$")
		}
		words = append(words, systemdQuoted(word))
	}
	return strings.Join(words, " ")
}

// systemdQuoted is one word, in quotes where it needs them.
func systemdQuoted(word string) string {
	plain := func(c rune) bool {
		return c > 0x7f || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune("/._-+=:,@%$~", c)
	}
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(word) + `"`
}

// SignalCrashes has a crash end this program by SIGABRT if systemd has started it. Go's own exit status of a crash is 2, also after
// the watchdog's SIGABRT: that of a wrong command line, after which a unit of [Systemd] is not started again.
func SignalCrashes(getenv func(string) string) {
	self := strconv.Itoa(os.Getpid())
	// Before version 248 systemd names its process only where there is a watchdog.
	if getenv("SYSTEMD_EXEC_PID") == self || getenv("WATCHDOG_PID") == self {
		debug.SetTraceback("crash")
	}
}
