package remote

import (
	"os/exec"
	"slices"
	"testing"
)

func TestSystemLookup(t *testing.T) {
	if _, err := exec.LookPath("getent"); err != nil {
		t.Skip("no getent")
	}
	if got := systemLookup(t.Context(), "localhost"); !slices.Contains(got, "127.0.0.1") && !slices.Contains(got, "::1") {
		t.Errorf("localhost: %q", got)
	}
	for _, host := range []string{"--help", "-s"} {
		if got := systemLookup(t.Context(), host); len(got) > 0 {
			t.Errorf("%q: %q", host, got)
		}
	}
}
