package serverprobe

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// askID is the id of the one request that a process gets: some servers read whole numbers only.
const askID = "1"

var initializeParams = []byte(`{"protocolVersion":"","capabilities":{},"clientInfo":{"name":"outlive-doctor","version":"1"}}`)

// errGone says that the process closed its stdout or ended; errSilent that it has not answered in time.
var (
	errGone   = errors.New("the server is gone")
	errSilent = errors.New("the server is silent")
	// errInstalling: its launcher still installs it.
	errInstalling = errors.New("the server is being installed")
)

// maxLine is the longest line that is read as a message, in bytes; what is longer is told as garbage.
const maxLine = 16 << 20

// keptLine is how much of a line is shown, in bytes.
const keptLine = 200

// keptStderr is how many of the last lines of stderr are kept, shownStderr how many of them are shown: the line with the
// reason may precede a long trace.
const keptStderr, shownStderr = 64, 8

// answer is a response to our request.
type answer struct {
	result  []byte // raw, nil when there is none
	refusal string // the error's message
	at      time.Time
}

// text returns a member of the result that is text.
func (a answer) text(path ...string) string {
	s, _ := jsonrpc.Unquote(jsonrpc.FindPath(a.result, path...).Of(a.result))
	return s
}

// serverName is what the server calls itself, with its version.
func (a answer) serverName() string {
	in := []string{"serverInfo"}
	if a.text("serverInfo", "name") == "" {
		in = []string{"_meta", mcp.MetaServerInfo}
	}
	return strings.TrimSpace(a.text(append(in, "name")...) + " " + a.text(append(in, "version")...))
}

// ask sends the request and waits for its answer.
func (p *process) ask(ctx context.Context, line []byte, patience time.Duration) (answer, error) {
	p.write(line)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case a := <-p.answers:
			return a, nil
		case <-p.silent:
			select { // both may be there: the answer was the last it said
			case a := <-p.answers:
				return a, nil
			default:
				return answer{}, errGone
			}
		case <-timer.C:
			if err := p.mayWait(); err != nil {
				return answer{}, err
			}
			timer.Reset(patience)
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// mayWait says why a process that is silent is not waited for any longer; nil while its launcher installs the server.
func (p *process) mayWait() error {
	since := time.Since(p.started)
	switch {
	case !p.installing():
		return errSilent
	case since >= p.spec.InstallTime:
		return errInstalling
	}
	p.waited = true
	if p.spec.Waiting != nil {
		p.spec.Waiting(launcher.Installs(p.spec.Argv), since)
	}
	return nil
}

// readOutput reads stdout to its end: the answer to our request goes to answers, messages are dropped, the rest is
// counted. It closes r itself: stdout is a plain descriptor, which nobody may close under a reader that waits.
func (p *process) readOutput(r io.ReadCloser) {
	defer r.Close()
	defer close(p.silent)
	eachLine(r, func(line []byte) {
		if trimmed := jsonrpc.Trim(line); len(trimmed) > 0 {
			p.hear(trimmed)
		}
	})
}

// hear takes in one line.
func (p *process) hear(line []byte) {
	var e jsonrpc.Envelope
	if err := e.Scan(line); err != nil && !errors.Is(err, jsonrpc.ErrDuplicateKey) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.noise++; p.noise == 1 {
			p.noiseLine = cut(string(line))
		}
		return
	}
	id := e.ID.Of(line)
	if text := jsonrpc.IntegerText(id); text != nil { // some return the number as text
		id = text
	}
	if e.Kind != jsonrpc.Response && e.Kind != jsonrpc.ErrorResponse || !jsonrpc.SameID(id, []byte(askID)) {
		return
	}
	a := answer{at: time.Now(), result: slices.Clone(e.Result.Of(line))}
	if e.Kind == jsonrpc.ErrorResponse {
		body := e.Error.Of(line)
		a.result, a.refusal = nil, cmp.Or(cut(jsonrpc.ErrorMessage(body)), cut(string(body)))
	}
	select {
	case p.answers <- a:
	default: // a second answer to one request
	}
}

// readErrors reads stderr to its end and keeps its last lines.
func (p *process) readErrors(r io.Reader) {
	defer close(p.quiet)
	eachLine(r, func(line []byte) {
		if text := strings.TrimRight(string(line), " \t\r\n"); text != "" {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.stderr = append(p.stderr, cut(text))
			p.stderr = p.stderr[max(0, len(p.stderr)-keptStderr):]
		}
	})
}

// eachLine reads to the end and hands on each line, or at most maxLine bytes of it.
func eachLine(r io.Reader, take func(line []byte)) {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		take(line)
		if err != nil {
			return
		}
		line = nil
	}
}

// cut shortens a line for people, and takes out what would move a terminal's cursor.
func cut(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(text) > keptLine {
		text = strings.ToValidUTF8(text[:keptLine], "") + "…"
	}
	return text
}
