package remote

import (
	"context"
	"os/exec"
	"slices"
	"strings"
)

// systemLookup asks the C library's own program for the addresses of a host.
func systemLookup(ctx context.Context, host string) (addresses []string) {
	if strings.HasPrefix(host, "-") { // it would be a flag
		return nil
	}
	said, _ := exec.CommandContext(ctx, "getent", "ahosts", host).Output() // nothing is said of a host that is not known
	for line := range strings.Lines(string(said)) {
		if words := strings.Fields(line); len(words) > 0 && !slices.Contains(addresses, words[0]) {
			addresses = append(addresses, words[0])
		}
	}
	return addresses
}
