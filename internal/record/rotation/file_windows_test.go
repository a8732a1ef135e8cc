package rotation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An editor that has the log open prevents that it is renamed; nothing is lost meanwhile, and it is rotated afterwards.
func TestOpenElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	f := file(path, 2)
	defer f.Close()
	chunk := strings.Repeat(strings.Repeat("z", 1023)+"\n", 128)
	write(t, f, chunk)
	editor, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 11 { // 1.5 MiB by then
		write(t, f, chunk)
	}
	if err := editor.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, f, chunk)
	var size int64
	files := beside(t, path)
	for _, one := range files {
		if st, err := os.Stat(one); err == nil {
			size += st.Size()
		}
	}
	if want := int64(13 * len(chunk)); size != want || len(files) != 2 {
		t.Errorf("%d of %d bytes in %v", size, want, files)
	}
}
