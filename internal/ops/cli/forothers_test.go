package cli

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	errWouldRun = errors.New("it would be done")
	errHelp     = errors.New("nothing but help")
)

// forOthersIs is why a command line is not done for other machines; nil: it is. Nothing runs.
func forOthersIs(t *testing.T, line string, permissions bool) (why error) {
	t.Helper()
	nowhere, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	root := newRoot(streams{in: nowhere, out: nowhere, err: nowhere})
	root.PersistentPreRunE = func(verb *cobra.Command, words []string) error {
		why = doneForOthers(verb, words, permissions)
		return errWouldRun
	}
	root.SetArgs(strings.Fields(line))
	if err := root.Execute(); !errors.Is(err, errWouldRun) {
		return cmp.Or(err, errHelp)
	}
	return why
}

// What the views ask for is done for other machines. Nothing is that starts a program of their choice, or looks further from here.
func TestForOthers(t *testing.T) {
	for _, line := range []string{
		"status --json", "agent list --json --home /x", "restart --json --reason why --timeout 3m0s one", "restart --all", "logs one --follow",
		"ack 01AB --by somebody@there --snooze", "press 01AB ack agent", "agent restart shop --home /x", "restart one --reason --hosts",
	} {
		if err := forOthersIs(t, line, true); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{
		"", "run -- sh", "agent start x", "agent", "status --hosts other", "status --hosts=other", "status --fleet", "logs one -- --hosts", "restart one -- x",
		"monitor", "upgrade", "hooks install", "fleet leave", "agent list --exec x", "agent restart shop --by me", "for-others -- status", "__complete status", "completion bash",
	} {
		if err := forOthersIs(t, line, true); err == nil {
			t.Errorf("%s is done", line)
		}
	}
}

// Allow, Deny and Stop are pressed from other machines only where that was said when this one was joined.
func TestForOthersWithoutPermissions(t *testing.T) {
	for line, want := range map[string]bool{
		"press 01AB ack": true, "press 01AB snooze": true, "press 01AB restart": true, "press --home /x 01AB resume": true,
		"press 01AB allow TARGET": false, "press 01AB deny TARGET": false, "press --home /x 01AB stop": false, "press --home stop 01AB ack": true,
	} {
		if err := forOthersIs(t, line, false); (err == nil) != want {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Verbs name flags that they have, and those that outlive uses on other machines are done there.
func TestForOthersNamesFlags(t *testing.T) {
	var done []string
	var look func(*cobra.Command)
	look = func(verb *cobra.Command) {
		flags, is := verb.Annotations[forOthers]
		if is {
			done = append(done, strings.TrimPrefix(verb.CommandPath(), "outlive "))
		}
		for _, name := range strings.Fields(flags) {
			if verb.Flags().Lookup(name) == nil {
				t.Errorf("%s has no flag --%s", verb.CommandPath(), name)
			}
		}
		for _, sub := range verb.Commands() {
			look(sub)
		}
	}
	look(Command())
	slices.Sort(done)
	if want := []string{"ack", "agent list", "agent restart", "logs", "press", "restart", "status"}; !slices.Equal(done, want) {
		t.Errorf("done for others is %q, want %q", done, want)
	}
}
