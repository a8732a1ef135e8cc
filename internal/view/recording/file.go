package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// version is that of the format.
const version = 1

// most is the size at which a recording ends, in bytes.
const most = 1 << 30

// ErrFull is returned when a recording has reached 1 GiB.
var ErrFull = errors.New("the recording has reached 1 GiB and ends here")

// Header is the first line of a recording.
type Header struct {
	Version    int       `json:"outlive_recording"`
	Outlive    string    `json:"outlive,omitempty"` // its version
	Name       string    `json:"name"`              // of what was recorded
	RecordedAt time.Time `json:"recorded_at"`       // when it began
}

// Writer writes a recording.
type Writer struct {
	file     *os.File
	size     int
	messages int
}

// Create begins a recording in a new file, which is the user's alone.
func Create(path string, h Header) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already; name another file, or remove it: %w", path, fs.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("begin the recording: %w", err)
	}
	h.Version = version
	line, err := json.Marshal(h)
	w := &Writer{file: file}
	if err == nil {
		err = w.write(line)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin the recording: %w", err), file.Close())
	}
	return w, nil
}

// Add appends a message, as it came from the control socket.
func (w *Writer) Add(line []byte) error {
	if w.size+len(line) > most {
		return ErrFull
	}
	if err := w.write(line); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.messages++
	return nil
}

func (w *Writer) write(line []byte) error {
	n, err := w.file.Write(append(line, '\n'))
	w.size += n
	return err
}

// Messages is how many were added.
func (w *Writer) Messages() int { return w.messages }

// Close ends the recording.
func (w *Writer) Close() error { return w.file.Close() }

// Recording is a file that was read.
type Recording struct {
	Header
	Messages []tap.Record
	LeftOut  int // messages that are missing
}

// Read reads a recording.
func Read(path string) (*Recording, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	r := &Recording{}
	if err := json.Unmarshal(first, &r.Header); err != nil || r.Version < 1 {
		return nil, fmt.Errorf("%s is not a recording: want a file that outlive tap --record has written", path)
	}
	if err := stateversion.Check(path, r.Version, version); err != nil {
		return nil, err
	}
	for n := 2; len(rest) > 0; n++ {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		m, err := tap.Parse(line)
		switch {
		case err != nil && !whole:
			// the last line is incomplete
		case err != nil:
			return nil, fmt.Errorf("%s:%d: the recording is damaged: %w", path, n, err)
		case m.LeftOut > 0:
			r.LeftOut += m.LeftOut
		default:
			r.Messages = append(r.Messages, m)
		}
	}
	return r, nil
}
