package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Kind is why there is no answer from a host.
type Kind uint8

// The kinds.
const (
	Silent      Kind = iota // it did not answer in time
	Unreachable             // ssh could not get there, or was not let in
	NoOutlive               // there is no outlive
	Refused                 // outlive there could not do it
	Unreadable              // what it said is not understood
)

// Word is a kind in a table.
func (k Kind) Word() string {
	return [...]string{"no answer", "no connection", "no outlive", "failed", "not understood"}[k]
}

// Failure is the error of a host that gave no answer.
type Failure struct {
	Kind Kind
	Text string // one line or several: what was said, and what may help
	Code int    // of [Refused]: outlive's exit status there
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// KindOf is the kind of any error of this room; [Unreachable] of others.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Kind
	}
	return Unreachable
}

// The exit statuses of a remote command that mean something: those of ssh and of the shell.
const (
	sshFailed  = 255
	notFound   = 127
	cannotExec = 126
)

const said = 4 // lines of what a program says that are shown

// failureOf says why a command gave no answer. spoke reports that outlive has said which version it is.
func failureOf(h Host, err error, stderr string, spoke bool) *Failure {
	text := lastLines(stderr)
	if carried, ok := errors.AsType[*Failure](err); ok {
		if carried.Kind == Refused {
			return &Failure{Kind: Refused, Code: carried.Code, Text: failedText(stderr, fmt.Sprintf("exit status %d", carried.Code))}
		}
		return carried
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		if errors.Is(err, exec.ErrNotFound) && !h.Local() {
			return &Failure{Kind: Unreachable, Text: fmt.Sprintf("%v: install OpenSSH's client, or say with OUTLIVE_SSH which program it is", err)}
		}
		return &Failure{Kind: Unreachable, Text: err.Error()}
	}
	code := exit.ExitCode()
	switch {
	case code == sshFailed && !h.Local():
		return &Failure{Kind: Unreachable, Text: cmp.Or(text, "ssh has ended without saying why") + hint(text, h)}
	case code == notFound && !spoke, code == cannotExec && !spoke:
		return &Failure{Kind: NoOutlive, Text: noOutlive(h, text)}
	}
	return &Failure{Kind: Refused, Code: code, Text: failedText(stderr, exit.String())}
}

// failedText is what outlive has said when it failed; status is its end, if it has said nothing.
func failedText(stderr, status string) string {
	return cmp.Or(strings.TrimPrefix(lastLines(stderr), "outlive: "), status)
}

func noOutlive(h Host, text string) string {
	if h.Program != "" {
		return fmt.Sprintf("%s is not there, or cannot be run; the hosts file names it", h.Program) + after(text)
	}
	return "outlive is not there, or not on the PATH of a command over ssh: install it (docs/INSTALL.md), or write its path behind " + h.Name + " in the hosts file" + after(text)
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return "\n" + text
}

// hint is what may help with an error of ssh's that many people meet once.
func hint(text string, h Host) string {
	switch {
	case strings.Contains(text, "Host key verification failed"):
		return "\nConnect once by hand to accept its key: ssh " + h.Name
	case strings.Contains(text, "Permission denied"):
		return "\nIt has to work without a question: put your key into ssh-agent, or try it by hand: ssh " + h.Name
	case strings.Contains(text, "Could not resolve hostname"):
		return "\nIs it a name of ~/.ssh/config? There is no such host otherwise."
	}
	return ""
}

func silent(limit time.Duration, stderr string) *Failure {
	return &Failure{Kind: Silent, Text: fmt.Sprintf("nothing was heard of it within %s", limit) + after(lastLines(stderr))}
}

// lastLines are the last lines that a program has said.
func lastLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-said):], "\n")
}
