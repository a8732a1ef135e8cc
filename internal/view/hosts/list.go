package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

const (
	// Local is the name of this machine in a list of hosts: outlive is run without ssh.
	Local = "localhost"
	// All stands for every host of the hosts file.
	All = "all"

	fileLimit = 1 << 20 // bytes of a hosts file
)

// Host is a machine that can be asked.
type Host struct {
	// Name is what ssh is given, and what the host is called wherever it is shown: NAME or USER@NAME.
	Name string
	// Program is the outlive there: a path, which may begin with ~/, or a name. "": outlive.
	Program string
}

// Local reports whether it is this machine.
func (h Host) Local() bool { return h.Name == Local }

// Resolve returns the hosts that are meant by a list: names with commas between them, [All] for those of the hosts file, or
// @FILE for those of another file. A name that stands in the hosts file has the program that is given there. Each host is
// returned once.
func Resolve(list, file string) ([]Host, error) {
	if path, ok := strings.CutPrefix(list, "@"); ok {
		known, err := Read(path)
		if err == nil && len(known) == 0 {
			err = fmt.Errorf("%s names no host", path)
		}
		return known, err
	}
	known, err := Read(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	var hosts []Host
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(known, func(h Host) bool { return h.Name == name })
		switch {
		case name == "":
			continue
		case name == All && len(known) == 0:
			return nil, fmt.Errorf("%s: %s: write the names of your hosts into it, one a line, as ssh takes them", All, without(file, missing))
		case name == All:
			hosts = append(hosts, known...)
		case at >= 0:
			hosts = append(hosts, known[at])
		default:
			if err := check(name); err != nil {
				return nil, err
			}
			hosts = append(hosts, Host{Name: name})
		}
	}
	if len(hosts) == 0 {
		return nil, errors.New("want names of hosts with commas between them, all, or @FILE")
	}
	return distinct(hosts), nil
}

func without(file string, missing bool) string {
	if missing {
		return "there is no " + file
	}
	return file + " names no host"
}

func distinct(all []Host) (list []Host) {
	for _, h := range all {
		if !slices.ContainsFunc(list, func(o Host) bool { return o.Name == h.Name }) {
			list = append(list, h)
		}
	}
	return list
}

// Read reads a hosts file: on each line the name of a host and, if it is not on the PATH there, the path of outlive; # begins a
// comment. The error has all mistakes with their places.
func Read(path string) ([]Host, error) {
	text, err := atomicfile.Read(path, fileLimit)
	if err != nil {
		return nil, fmt.Errorf("hosts file: %w", err)
	}
	source := fileerror.NewSource(path, text)
	var hosts []Host
	var wrong []fileerror.Problem
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		name, program, _ := strings.Cut(strings.TrimSpace(line), " ")
		if before, after, ok := strings.Cut(name, "\t"); ok {
			name, program = before, after+" "+program
		}
		if name == "" {
			continue
		}
		h := Host{Name: name, Program: strings.TrimSpace(program)}
		err := check(name)
		switch {
		case err == nil && name == All:
			err = errors.New("all stands for every host of this file")
		case err == nil:
			err = checkProgram(h.Program)
		}
		if err != nil {
			wrong = append(wrong, fileerror.Problem{Pos: fileerror.Pos{Line: n + 1, Column: 1}, Message: err.Error()})
			continue
		}
		hosts = append(hosts, h)
	}
	return distinct(hosts), source.Problems(wrong)
}

// check refuses what ssh could take for something else than the name of a host, and what a shell would act upon: ssh hands the
// name to commands of its configuration.
func check(name string) error {
	user, host, hasUser := strings.Cut(name, "@")
	if !hasUser {
		user, host = "", name
	}
	switch {
	case strings.Contains(name, "://"), strings.ContainsRune(name, '/'):
		return fmt.Errorf("host %q: want NAME or USER@NAME; a port and the like belong into ~/.ssh/config", name)
	case hasUser && user == "", host == "":
		return fmt.Errorf("host %q: want NAME or USER@NAME", name)
	case strings.HasPrefix(name, "-"), strings.HasPrefix(host, "-"):
		return fmt.Errorf("host %q: a name does not begin with -", name)
	case len(name) > 255:
		return fmt.Errorf("host %.20q…: the name is too long", name)
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-:%@+", r) {
			return fmt.Errorf("host %q: %q is in no name of a host", name, r)
		}
	}
	return nil
}

func checkProgram(path string) error {
	if strings.HasPrefix(path, "-") || strings.ContainsFunc(path, unicode.IsControl) {
		return fmt.Errorf("%q: want the path of outlive on that host", path)
	}
	return nil
}
