package piv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Intervention is one entry of the improvement log (PIV-13).
type Intervention struct {
	Time    time.Time
	Project string
	Phase   int // or [NoPhase]
	Stall   string
	Action  string
	Outcome string
	Details string
}

// PhaseName is a phase as people read it.
func PhaseName(phase int) string {
	if phase == NoPhase {
		return "unknown"
	}
	return strconv.Itoa(phase)
}

// String is the entry in the format of PIV-13, with an empty line behind it.
func (e Intervention) String() string {
	return fmt.Sprintf("### %s — %s (Phase %s)\n- **Stall:** %s\n- **Action:** %s\n- **Outcome:** %s\n- **Details:** %s\n\n",
		FormatTime(e.Time), oneLine(e.Project), PhaseName(e.Phase), oneLine(e.Stall), oneLine(e.Action), oneLine(e.Outcome), oneLine(e.Details))
}

// oneLine keeps a foreign text from looking like another entry, and from driving the terminal that shows it.
func oneLine(s string) string { return logline.Printable(strings.Join(strings.Fields(s), " ")) }

// tailLooked is how much of the log's end is searched for an entry that may be there already, in bytes.
const tailLooked = 256 << 10

// AppendOnce puts text at the end of the improvement log, durably, unless it stands near the end already: whoever was
// killed between writing and remembering that it has written may simply do it again. It makes the file and its directory.
func AppendOnce(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("improvement log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("improvement log: %w", err)
	}
	defer f.Close()
	tail, err := readTail(f)
	if err != nil {
		return fmt.Errorf("improvement log %s: %w", path, err)
	}
	if bytes.Contains(tail, []byte(text)) {
		return nil
	}
	if len(tail) > 0 && tail[len(tail)-1] != '\n' {
		text = "\n\n" + text // behind an entry that was cut off, by a full disk or a kill
	}
	if _, err = f.WriteString(text); err != nil {
		return fmt.Errorf("improvement log %s: %w", path, err)
	}
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrInvalid) {
		return fmt.Errorf("improvement log %s: %w", path, err)
	}
	return nil
}

func readTail(f *os.File) ([]byte, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	tail := make([]byte, min(end, tailLooked))
	n, err := f.ReadAt(tail, end-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return tail[:n], nil
}
