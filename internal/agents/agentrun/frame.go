package agentrun

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// frameKind is the kind of a frame. Wrapper and joined clients exchange frames: one byte of kind, four bytes of length
// (big endian), the content.
type frameKind byte

const (
	helloFrame   frameKind = 'h' // the client's first: a hello
	welcomeFrame frameKind = 'w' // accepted; no content
	refusedFrame frameKind = 'r' // refused; the reason
	outputFrame  frameKind = 'o' // of the agent, for the person's terminal
	inputFrame   frameKind = 'i' // of the person, for the agent
	windowFrame  frameKind = 's' // the person's window has another size: a window
	exitFrame    frameKind = 'x' // the agent has ended: an Exit
)

// frameLimit is the longest content of a frame, in bytes.
const frameLimit = 1 << 20

// hello is the first message of a client.
type hello struct {
	Version  int    `json:"v"` // 1
	Who      string `json:"who"`
	PID      int    `json:"pid"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Window   window `json:"window"`
}

// window is the size of a person's terminal, in characters; zero: unknown.
type window struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
	// Redraw asks for the whole screen, even if the size is the same, because it was overwritten.
	Redraw bool `json:"redraw,omitempty"`
}

// Joined is a person who has joined an agent's terminal.
type Joined struct {
	Who      string    `json:"who"` // the name of the user
	PID      int       `json:"pid"` // of their outlive agent attach
	ReadOnly bool      `json:"read_only,omitempty"`
	Since    time.Time `json:"since"`
}

// errFrame says that the other end does not speak this protocol.
var errFrame = errors.New("not a frame of this protocol")

func appendFrame(b []byte, kind frameKind, content []byte) []byte {
	b = append(b, byte(kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

func sendFrame(w io.Writer, kind frameKind, content []byte) error {
	_, err := w.Write(appendFrame(make([]byte, 0, 5+len(content)), kind, content))
	return err
}

// sendValue writes a frame whose content is JSON.
func sendValue(w io.Writer, kind frameKind, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return sendFrame(w, kind, content)
}

// readFrame reads the next frame. The end between two frames is [io.EOF].
func readFrame(r io.Reader) (frameKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > frameLimit {
		return 0, nil, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return frameKind(head[0]), content, nil
}
