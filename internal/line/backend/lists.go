package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// lists is what a server offers (tools, prompts, resources): read if nobody has, compared between processes, announced
// when the client has seen something else.
type lists struct {
	*core

	doubted  [mcp.Lists]bool // to be looked at again
	looks    int             // how often doubted lists were looked at since one was found to be another
	lookedAt time.Time       // the latest time
}

// pagesMost bounds how many pages of one list outlive reads for itself.
const pagesMost = 200

// listAnswered inspects a page of a list on its way to the client.
func (ls *lists) listAnswered(c *call, line []byte) []byte {
	l, _ := mcp.ListOf(c.method)
	if p := ls.byGen(c.gen); p != nil {
		ls.streams.listedBy(p)
	}
	if ls.env.Kind == jsonrpc.ErrorResponse {
		return ls.listMissing(c, l, line)
	}
	if c.first && c.gen == ls.process.gen {
		ls.memory.learnList(ls.session.Era, l, ls.process, ls.env.Result.Of(line))
	}
	if l == mcp.Tools && c.first {
		line = ls.tools.joinPage(line)
	}
	switch whole := ls.session.SawPage(&ls.reader, l, c.first, ls.env.Result.Of(line)); {
	case whole == nil:
	case c.gen == ls.process.gen:
		ls.process.shows[l] = whole
		if l == mcp.Tools {
			ls.tools.settle(nil)
		}
	default:
		ls.doubtList(l) // another process has taken over since, and its list was not compared
	}
	return line
}

// listMissing handles a server without tools: outlive's own still make a list.
func (ls *lists) listMissing(c *call, l mcp.List, line []byte) []byte {
	if l != mcp.Tools || ls.opts.NoTools || !c.first || jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) != jsonrpc.MethodNotFound {
		return line
	}
	ls.tools.answerToolsAlone(c)
	return nil
}

// readList reads a list of p to its end and calls done with it, or with nil if it cannot be read, which says nothing
// about its content.
func (ls *lists) readList(p *process, l mcp.List, done func(mcp.List, mcp.Catalog)) {
	ls.readPages(p, l, mcp.Catalog{}, nil, map[string]bool{}, done)
}

// readPages reads the page at a raw cursor and those behind it. seen are the cursors before: a list ends at one of them.
func (ls *lists) readPages(p *process, l mcp.List, so mcp.Catalog, cursor []byte, seen map[string]bool, done func(mcp.List, mcp.Catalog)) {
	seen[string(cursor)] = true
	meta := ls.privateMeta()
	ls.questions.ask(p, func(id []byte) []byte { return mcp.ListLine(id, l, cursor, meta) }, func(line []byte) {
		ls.streams.listedBy(p)
		if ls.env.Kind != jsonrpc.Response {
			// A process that does not know the method has an empty list.
			if jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) != jsonrpc.MethodNotFound {
				so = nil
			}
			done(l, so)
			return
		}
		result := ls.env.Result.Of(line)
		if cursor == nil && p.role == serving {
			ls.memory.learnList(ls.session.Era, l, p, result)
		}
		next := ls.reader.AddPage(so, l, result)
		if next != nil && !seen[string(next)] && len(seen) <= pagesMost {
			ls.readPages(p, l, so, next, seen, done)
			return
		}
		done(l, so)
	})
}

// listFromMemory answers a list request while no server is available. Not in an array: the list may change before the
// array's last answer is sent, and the client would get the change notification first.
func (ls *lists) listFromMemory(c *call) bool {
	l, _ := mcp.ListOf(c.method)
	result := ls.memory.known.Lists[listKey(ls.session.Era, l)]
	up := ls.process.answered()
	if up || ls.opts.NoFastStart || result == nil || !c.first || ls.arrays.awaits(c.id) || ls.session.Seen[l] != nil && !ls.Asleep() || ls.hopeless() ||
		!ls.session.Answered() && ls.session.Era != mcp.Modern {
		return false
	}
	line := jsonrpc.AppendResult(nil, c.id, result)
	_ = ls.env.Scan(line) // two valid texts put together
	if l == mcp.Tools {
		line = ls.tools.joinPage(line)
	}
	ls.session.SawPage(&ls.reader, l, true, ls.env.Result.Of(line))
	ls.history.remembered(c.method.String())
	ls.flow.answer(c, line)
	return true
}
