package batchfile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const tellArguments = "BATCHFILE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(tellArguments) != "" {
		_ = json.NewEncoder(os.Stdout).Encode(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// The program behind a batch file gets the arguments as they were, as one behind npx.cmd does.
func TestArgumentsArrive(t *testing.T) {
	arrive(t, [][]string{
		{"-y", "server"},
		{"http://h/?a=1&b=2", "after"},
		{"two words", ""},
		{"a^b", "x|y", "<in", ">out", "wow!"},
		{`C:\dir\`, "after"},
	})
}

// No variable is put in their place.
func TestPercentSignsArrive(t *testing.T) {
	arrive(t, [][]string{{"%PATH%", "100%", "%", "%%", "after"}, {"http://h/?q=a%20b%26c"}})
}

func arrive(t *testing.T, wanted [][]string) {
	t.Helper()
	t.Setenv(tellArguments, "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"npx.cmd", "with blank.BAT"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("@echo off\r\n\""+exe+"\" %*\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, want := range wanted {
			cmd := exec.Command(path, want...)
			if err := Prepare(cmd); err != nil {
				t.Fatal(err)
			}
			out, err := cmd.Output()
			var got []string
			if err != nil || json.Unmarshal(out, &got) != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q arrived as %s, %v", name, want, out, err)
			}
		}
	}
}
