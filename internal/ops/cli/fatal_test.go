package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// WD-17: what outlive cannot go on after is told on stderr with its trace, the last line is that of the exit, and the
// exit code is 1.
func TestAPanicIsAFatalError(t *testing.T) {
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	run := func() (err error) {
		k, err := openSinks(streams{err: stderr}, &settings{}, logline.Options{Inherit: true})
		if err != nil {
			return err
		}
		defer k.close()
		defer tellFatal(k, &err)
		panic("the table is empty")
	}
	err = run()
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != 1 {
		t.Errorf("error %v", err)
	}
	text, err := os.ReadFile(stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	stamp := `^\[[0-9-]{10}T[0-9:]{8}\.[0-9]{6}Z\] \[SUPERVISOR\] `
	if !regexp.MustCompile(stamp + `FATAL ERROR: the table is empty$`).MatchString(lines[0]) {
		t.Errorf("first: %s", lines[0])
	}
	if last := lines[len(lines)-1]; !regexp.MustCompile(stamp + `=== Watchdog Supervisor Exiting \(code: 1\) ===$`).MatchString(last) {
		t.Errorf("last: %s", last)
	}
	if trace := strings.Join(lines[1:], "\n"); !strings.Contains(trace, "goroutine ") || !strings.Contains(trace, "fatal_test.go:") {
		t.Errorf("no trace:\n%s", trace)
	}
}
