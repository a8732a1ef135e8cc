package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// pagesMost bounds how many pages of one list outlive reads for itself.
const pagesMost = 200

// known is one list as a process showed it last, to the client or to outlive itself.
type known struct {
	now     mcp.Catalog
	gen     int  // the process that showed it, or a later one that is the same
	doubted bool // it is to be looked at again
}

// question is a request outlive itself asked the server.
type question struct {
	answered func(line []byte)
}

// ask sends the server a request of outlive's own and calls answered with the whole answer; b.env is scanned from it.
// If the process dies first, nobody is told: whoever asks again asks the next one.
func (b *Backend) ask(build func(id []byte) []byte, answered func(line []byte)) {
	id := b.newID()
	b.private[string(id)] = &question{answered: answered}
	b.send(build(id))
}

// listAnswered looks at a page of a list on its way to the client.
func (b *Backend) listAnswered(c *call, line []byte) []byte {
	l, _ := mcp.ListOf(c.method)
	if b.env.Kind == jsonrpc.ErrorResponse {
		return b.listMissing(c, l, line)
	}
	if l == mcp.Tools && c.first {
		b.tools.avoid(b.env.Result.Of(line))
		line = b.withTools(line)
	}
	if whole := b.session.SawPage(l, c.first, b.env.Result.Of(line)); whole != nil {
		b.lists[l].now, b.lists[l].gen = whole, b.process.gen
		if l == mcp.Tools {
			b.tools.settled = true
		}
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

// readList walks a list to its end and calls done with all of it; a list that cannot be read is left alone.
func (b *Backend) readList(l mcp.List, so mcp.Catalog, cursor []byte, page int, done func(mcp.List, mcp.Catalog)) {
	meta := b.privateMeta()
	b.ask(func(id []byte) []byte { return mcp.ListLine(id, l, cursor, meta) }, func(line []byte) {
		if b.env.Kind != jsonrpc.Response {
			b.listUnreadable(l, line, done)
			return
		}
		result := b.env.Result.Of(line)
		if l == mcp.Tools && page == 0 {
			b.tools.avoid(result)
		}
		next := so.AddPage(l, result)
		if next != nil && page < pagesMost {
			b.readList(l, so, next, page+1, done)
			return
		}
		if l == mcp.Tools {
			so = b.ownTools(so)
		}
		done(l, so)
	})
}

// listUnreadable: a new process that does not know the method any more has an empty list; other errors say nothing.
func (b *Backend) listUnreadable(l mcp.List, line []byte, done func(mcp.List, mcp.Catalog)) {
	code := jsonrpc.FindPath(line, "error", "code").Of(line)
	if string(code) != "-32601" {
		b.settleCalls() // there will be no list
		return
	}
	empty := mcp.Catalog{}
	if l == mcp.Tools {
		empty = b.ownTools(empty)
	}
	done(l, empty)
}

// privateMeta is the _meta of outlive's own requests: the client's in the modern era, none in the legacy one.
func (b *Backend) privateMeta() []byte {
	if b.session.Era != mcp.Modern {
		return nil
	}
	return bytes.Clone(b.session.Meta)
}
