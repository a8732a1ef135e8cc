package collect

import (
	"os"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	tailShown = 32 << 10 // bytes of the end of a log
	tailLines = 200
)

// Tail is the end of a log as [LastLines] has it; of one that is not there it is empty.
func Tail(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := atomicfile.OpenShared(path, os.O_RDONLY, 0)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, min(st.Size(), tailShown))
	n, err := f.ReadAt(text, st.Size()-int64(len(text)))
	if n == len(text) {
		err = nil
	}
	return LastLines(string(text[:n])), err
}

// LastLines are the last 200 lines of a text, without what would not be shown.
func LastLines(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	lines := strings.Split(strings.TrimRight(clean, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
