package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// output is the server's stdout: one message a line, in the form that the flags select.
type output struct {
	o  *options
	mu sync.Mutex
	w  io.Writer
	// begun says that the byte order mark, if any, was written.
	begun bool
	// noise counts the messages of -garbage, to vary it.
	noise int
}

// answer returns the line that answers id, without newline. key is "result" or "error".
func (p *output) answer(id json.RawMessage, key string, body any) []byte {
	raw := encode(body)
	line := join(`{"jsonrpc":"2.0","id":`, id, `,"`, key, `":`, raw, `}`)
	if p.o.idLast {
		line = join(`{"`, key, `":`, raw, `,"jsonrpc":"2.0","id":`, id, `}`)
	}
	if p.o.batchOut {
		line = join(`[`, json.RawMessage(line), `]`)
	}
	if p.o.pretty {
		var b bytes.Buffer
		if json.Indent(&b, line, "", "  ") == nil {
			line = b.Bytes()
		}
	}
	return line
}

// line writes one message. Errors are ignored: it does not matter if stdout is no longer read.
func (p *output) line(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(p.noiseLines())
	end := "\n"
	if p.o.crlf {
		end = "\r\n"
	}
	p.write(append(bytes.Clone(line), end...))
}

// fragment writes bytes unchanged: the rest of a line that a crash leaves.
func (p *output) fragment(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(b)
}

// write requires mu.
func (p *output) write(b []byte) {
	if len(b) == 0 {
		return
	}
	if p.o.bom && !p.begun {
		b = append([]byte("\xef\xbb\xbf"), b...)
	}
	p.begun = true
	_, _ = p.w.Write(b)
}

func (p *output) noiseLines() []byte {
	if !p.o.garbage {
		return nil
	}
	p.noise++
	switch p.noise % 4 {
	case 1:
		return fmt.Appendf(nil, "Server listening, request %d\n", p.noise)
	case 2:
		return fmt.Appendf(nil, `{"level":30,"time":1760000000000,"pid":1,"msg":"request %d"}`+"\n", p.noise)
	case 3:
		return []byte("\n")
	default:
		return []byte(`{"jsonrpc":"2.0","id":` + "\n")
	}
}

func (p *output) notify(method string, params any) {
	p.line(requestLine(nil, method, params))
}
