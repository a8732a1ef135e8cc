package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/control"
)

// findInstance returns the one running outlive that a person calls name: a server's name, or name@PID of outlive where
// several serve the same.
func findInstance(name string) (control.Instance, error) {
	all, err := control.Discover(socketDir())
	if err != nil {
		return control.Instance{}, fail(exitFailure, "%w", err)
	}
	pid := 0
	plain, server, _ := strings.Cut(name, "/")
	if before, after, ok := strings.Cut(plain, "@"); ok {
		if pid, err = strconv.Atoi(after); err != nil {
			return control.Instance{}, fail(exitUsage, "%q: want NAME or NAME@PID", name)
		}
		plain = before
	}
	var match []control.Instance
	for _, i := range all {
		if i.Is(plain) && (pid == 0 || pid == i.PID) {
			match = append(match, i)
		}
	}
	switch len(match) {
	case 1:
		match[0].Server = server
		return match[0], nil
	case 0:
		return control.Instance{}, fail(exitFailure, "no server %q is running; running: %s", name, namesOf(all))
	}
	return control.Instance{}, fail(exitUsage, "%d servers are called %q; say which one: %s", len(match), name, namesOf(match))
}

func namesOf(all []control.Instance) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = fmt.Sprintf("%s@%d", one.Name, one.PID)
	}
	return strings.Join(names, ", ")
}
