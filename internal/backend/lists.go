package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// pagesMost bounds how many pages of one list outlive reads for itself.
const pagesMost = 200

// question is a request outlive itself asked the server.
type question struct {
	of       *process // whom it was asked
	answered func(line []byte)
}

// ask sends p a request of outlive's own and calls answered with the whole answer; b.env is scanned from it. If the
// process dies first, nobody is told: whoever asks again asks the next one.
func (b *Backend) ask(p *process, build func(id []byte) []byte, answered func(line []byte)) {
	if !p.takes() {
		return
	}
	id := b.newID(p.gen)
	b.private[string(id)] = &question{of: p, answered: answered}
	p.send(build(id))
}

// forgetQuestions drops what p will never answer.
func (b *Backend) forgetQuestions(p *process) {
	for id, q := range b.private {
		if q.of == p {
			delete(b.private, id)
		}
	}
}

// listAnswered looks at a page of a list on its way to the client.
func (b *Backend) listAnswered(c *call, line []byte) []byte {
	l, _ := mcp.ListOf(c.method)
	if p := b.byGen(c.gen); p != nil {
		b.listedBy(p)
	}
	if b.env.Kind == jsonrpc.ErrorResponse {
		return b.listMissing(c, l, line)
	}
	if c.first && c.gen == b.process.gen {
		b.learnList(l, b.env.Result.Of(line))
	}
	if l == mcp.Tools && c.first {
		page := mcp.Catalog{}
		b.reader.AddPage(page, mcp.Tools, b.env.Result.Of(line))
		b.tools.avoid(page)
		line = b.withTools(line)
	}
	switch whole := b.session.SawPage(&b.reader, l, c.first, b.env.Result.Of(line)); {
	case whole == nil:
	case c.gen == b.process.gen:
		b.process.shows[l] = whole
		b.tools.settled = b.tools.settled || l == mcp.Tools
	default:
		b.doubtList(l) // another process has taken over since, and nobody has compared its list with this one
	}
	return line
}

// listMissing handles a server that knows no tools at all: outlive's own are a list, too.
func (b *Backend) listMissing(c *call, l mcp.List, line []byte) []byte {
	code := jsonrpc.FindPath(line, "error", "code").Of(line)
	if l != mcp.Tools || !b.tools.on || !c.first || string(code) != "-32601" {
		return line
	}
	b.tools.settled = true
	b.answerToolsAlone(c)
	return nil
}

// readList walks a list of p to its end and calls done with all of it, nil if it cannot be read: that says nothing.
func (b *Backend) readList(p *process, l mcp.List, done func(mcp.List, mcp.Catalog)) {
	b.readPages(p, l, mcp.Catalog{}, nil, 0, done)
}

func (b *Backend) readPages(p *process, l mcp.List, so mcp.Catalog, cursor []byte, page int, done func(mcp.List, mcp.Catalog)) {
	meta := b.privateMeta()
	b.ask(p, func(id []byte) []byte { return mcp.ListLine(id, l, cursor, meta) }, func(line []byte) {
		b.listedBy(p)
		if b.env.Kind != jsonrpc.Response {
			// A process that does not know the method has an empty list.
			if code := jsonrpc.FindPath(line, "error", "code").Of(line); string(code) != "-32601" {
				so = nil
			}
			done(l, so)
			return
		}
		result := b.env.Result.Of(line)
		if page == 0 && p.role == serving {
			b.learnList(l, result)
		}
		next := b.reader.AddPage(so, l, result)
		if next != nil && page < pagesMost {
			b.readPages(p, l, so, next, page+1, done)
			return
		}
		done(l, so)
	})
}

// privateMeta is the _meta of outlive's own requests: the client's in the modern era, none in the legacy one.
func (b *Backend) privateMeta() []byte {
	if b.session.Era != mcp.Modern {
		return nil
	}
	return bytes.Clone(b.session.Meta)
}
