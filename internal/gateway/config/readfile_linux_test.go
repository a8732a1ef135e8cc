package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What ${file:…} names is read only if it is an ordinary file, and not too long: a device has no end, and a pipe may have no writer.
func TestFilesOfAnyKind(t *testing.T) {
	dir := t.TempDir()
	pipe, long, good := filepath.Join(dir, "pipe"), filepath.Join(dir, "long"), filepath.Join(dir, "good")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, make([]byte, largestSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(good, []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/zero": "cannot read /dev/zero: it is not a regular file, but a device, a pipe or a directory",
		pipe:        "it is not a regular file",
		dir:         "it is not a regular file",
		long:        "it has more than 64 KiB",
		good:        "",
	} {
		_, err := Parse("outlive.yaml", []byte("servers:\n  a: {command: x, env: {T: \"${file:"+path+"}\"}}\n"), Options{})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "outlive.yaml:2:29: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
