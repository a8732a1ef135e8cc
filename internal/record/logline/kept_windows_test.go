package logline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// An editor that has the log open prevents that it is renamed; nothing is lost meanwhile, and it is rotated afterwards.
func TestKeptOpenElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	failures := make(chan error, 10)
	k := OpenKept(path, KeptOptions{MaxSizeMiB: 1, OnFailure: func(err error) { failures <- err }})
	chunk := []byte(strings.Repeat(strings.Repeat("z", 1023)+"\n", 128))
	write := func(n int) {
		t.Helper()
		for range n {
			if _, err := k.Write(chunk); err != nil {
				t.Fatal(err)
			}
			for full := k.Room(); full != nil; full = k.Room() {
				<-full
			}
		}
	}
	write(1)
	var editor *os.File
	await.Value(t, "the file is there", func() (err error, opened bool) {
		editor, err = os.Open(path)
		return err, err == nil
	})
	write(11) // 1.5 MiB by now
	if err := editor.Close(); err != nil {
		t.Fatal(err)
	}
	write(1)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	var size int64
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			size += st.Size()
		}
	}
	if want := int64(13 * len(chunk)); size != want || k.Lost() != 0 || len(failures) != 0 || len(files) != 2 {
		t.Errorf("%d of %d bytes in %v, %d lines lost, %d failures", size, want, files, k.Lost(), len(failures))
	}
}
