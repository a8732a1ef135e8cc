package collect

import (
	"os"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

const (
	tailShown = 32 << 10 // bytes of the end of a log
	searched  = 1 << 20  // likewise, where words are looked for
	tailLines = 200
)

// Tail is the end of a log as [LastLines] has it; of one that is not there it is empty.
func Tail(path string) (string, error) {
	text, err := End(path, tailShown)
	return LastLines(text), err
}

// Search are the last lines with a text, in capitals or not, of a log and of the file that was rotated away last: in their last MiB, and no
// more of them than [Tail] has.
func Search(path, text string) (string, error) {
	files := append(rotation.Older(path), path)
	text = strings.ToLower(text)
	var found strings.Builder
	for _, file := range files[max(0, len(files)-2):] {
		content, err := End(file, searched)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(content) {
			if strings.Contains(strings.ToLower(line), text) {
				found.WriteString(strings.TrimRight(line, "\r\n") + "\n")
			}
		}
	}
	all := found.String()
	return LastLines(all[max(0, len(all)-tailShown):]), nil
}

// End is the end of a file, of so many bytes at most. Of one that is not there it is empty.
func End(path string, most int64) (string, error) {
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
	text := make([]byte, min(st.Size(), most))
	n, err := f.ReadAt(text, st.Size()-int64(len(text)))
	if n == len(text) {
		err = nil
	}
	return string(text[:n]), err
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
