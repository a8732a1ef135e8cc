package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/restart"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

const (
	// verifyFor is how long verify_server_restarted waits for a restart that has begun.
	verifyFor = 10 * time.Second
	// settleFor is how long the server may take to show its tools before a call of an injected name is outlive's.
	settleFor = 2 * time.Second
	// ownPrefix goes before the name of an injected tool when the server has a tool of that name: the server's wins.
	ownPrefix = "outlive_"
	// joinedMost is the longest page that is kept for the next time, in bytes.
	joinedMost = 128 << 10
)

// toolbox is the injected tools as the client sees them.
type toolbox struct {
	on      bool
	settled bool         // the server's own tools are known, so the names are final
	shown   []shownTool  // in their fixed order
	page    joinedPage   // the last one, which a server mostly repeats word for word, also after a restart
	request request      // the last call of restart_server
	verify  []parkedCall // until the restart they ask about is over
	unsure  []parkedCall // until it is known whose tool they call
}

// request is a restart that the agent asked for.
type request struct {
	marker restart.MarkerRecord // as it was written; the zero value: nothing was asked for
	newest int                  // the newest process then: those after it were started after the request
}

// parkedCall is a call held for outlive's own answer; seq tells whether the call is still the same one.
type parkedCall struct {
	*call
	seq uint64
}

// shownTool is an injected tool under the name the client knows.
type shownTool struct {
	tool restart.Tool
	name string
}

// joinedPage is the result of a tools/list as the server wrote it, and with the injected tools, whose names it decides.
type joinedPage struct{ theirs, joined []byte }

func (t *toolbox) init(on bool) {
	t.on = on
	for _, tool := range restart.Tools() {
		t.shown = append(t.shown, shownTool{tool, string(tool)})
	}
}

// avoid chooses the names by the server's own tools.
func (t *toolbox) avoid(theirs mcp.Catalog) {
	for i := range t.shown {
		one := &t.shown[i]
		one.name = string(one.tool)
		if _, taken := theirs[one.name]; taken {
			one.name = ownPrefix + one.name
		}
	}
}

// json returns the raw tool objects in their fixed order.
func (t *toolbox) json() [][]byte {
	if !t.on {
		return nil
	}
	var out [][]byte
	for _, one := range t.shown {
		out = append(out, restart.ToolJSON(one.tool, one.name))
	}
	return out
}

// named returns the injected tool that the client knows by name.
func (t *toolbox) named(name []byte) (restart.Tool, bool) {
	if !t.on {
		return "", false
	}
	for _, one := range t.shown {
		if jsonrpc.EqualString(name, one.name) {
			return one.tool, true
		}
	}
	return "", false
}

// withTools returns the answer to a tools/list with the injected tools at the end of its array, after their names were
// chosen by it.
func (b *Backend) withTools(line []byte) []byte {
	result := b.env.Result.Of(line)
	if page := b.tools.page; len(result) > 0 && bytes.Equal(page.theirs, result) {
		return b.withResult(line, page.joined)
	}
	at := jsonrpc.Find(result, "tools")
	if !b.tools.on || !jsonrpc.IsArray(at.Of(result)) {
		return line
	}
	longer := jsonrpc.AppendElements(nil, at.Of(result), b.tools.json()...)
	joined := jsonrpc.Replace(nil, result, at, longer)
	if len(joined) <= joinedMost {
		b.tools.page = joinedPage{bytes.Clone(result), joined}
	}
	return b.withResult(line, joined)
}

// ownTools adds the injected tools to a catalogue of the server's.
func (b *Backend) ownTools(c mcp.Catalog) mcp.Catalog {
	b.reader.AddPage(c, mcp.Tools, b.ownToolsResult())
	return c
}

func (b *Backend) ownToolsResult() []byte {
	out := []byte(`{`)
	if b.session.Era == mcp.Modern {
		out = append(out, `"resultType":"complete","ttlMs":0,"cacheScope":"private",`...)
	}
	out = append(out, `"tools":[`...)
	out = append(out, bytes.Join(b.tools.json(), []byte(","))...)
	return append(out, "]}"...)
}

// listToolsAlone answers tools/list for a server that has declared to have no tools.
func (b *Backend) listToolsAlone(c *call) bool {
	if !b.tools.on || b.session.Era != mcp.Legacy || !b.session.Answered() || !b.process.answered || b.process.hasTools {
		return false
	}
	b.tools.settled = true
	b.answerToolsAlone(c)
	return true
}

func (b *Backend) answerToolsAlone(c *call) {
	result := b.ownToolsResult()
	b.session.SawPage(&b.reader, mcp.Tools, c.first, result)
	b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, result))
}

// callTool answers a call of an injected tool. It reports false for every other tool.
func (b *Backend) callTool(c *call) bool {
	name := c.tool.Of(c.line)
	tool, ok := b.tools.named(name)
	if !ok {
		return false
	}
	if !b.tools.settled && b.process.accepting && (b.process.hasTools || b.session.Era == mcp.Modern) {
		// Perhaps the server has a tool of that name; then it is the server's to answer.
		b.tools.unsure = append(b.tools.unsure, parkedCall{c, c.seq})
		b.arm(timerSettle, settleFor)
		b.lookAt(mcp.Tools, b.learned)
		return true
	}
	b.runTool(c, tool)
	return true
}

// settleCalls decides about the calls that waited for the server's list, by the names as they are known now: the list
// may have come, or never will. A call may have been cancelled meanwhile.
func (b *Backend) settleCalls() {
	unsure := b.tools.unsure
	b.tools.unsure = nil
	b.disarm(timerSettle)
	for _, c := range unsure {
		if !b.stillThere(c) {
			continue
		}
		if tool, ours := b.tools.named(c.tool.Of(c.line)); ours {
			b.runTool(c.call, tool)
		} else {
			b.queue(c.call)
		}
	}
	b.flushQueue()
}

func (b *Backend) runTool(c *call, tool restart.Tool) {
	params := c.param.Of(c.line)
	args := jsonrpc.Find(params, "arguments").Of(params)
	switch tool {
	case restart.RestartServer:
		b.runRestart(c, args)
	case restart.VerifyRestarted:
		b.runVerify(c)
	case restart.ServerStatus:
		b.say(c, jsonrpc.Indented(b.Status(b.now)), false)
	}
}

func (b *Backend) say(c *call, text string, isError bool) {
	b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, mcp.ToolText(text, isError, b.session.Era, nil)))
}

// runRestart answers first and restarts then: the answer is on its way before the server is touched (S1 3.3).
func (b *Backend) runRestart(c *call, args []byte) {
	reason, ok := jsonrpc.Unquote(jsonrpc.Find(args, "reason").Of(args))
	if !ok {
		b.say(c, `❌ restart_server needs an argument "reason" (a string): why the server is to be restarted.`, true)
		return
	}
	marker := restart.RequestedMarker(b.now, reason)
	b.tools.request = request{marker, b.machine.Newest()}
	err := b.world.WriteMarker(marker)
	attrs := []slog.Attr{slog.String(event.KeyReason, reason), slog.Int(event.KeyExitCode, restart.RestartExitCode),
		slog.String(event.KeyMarkerPath, b.world.MarkerPath())}
	if err != nil {
		attrs = append(attrs, slog.String(event.KeyError, err.Error()))
	}
	b.emit(event.ServerRestartRequested, slog.LevelInfo, "Server restart requested: "+reason, attrs...)
	text := restart.ScheduledText(reason)
	if err != nil {
		text += fmt.Sprintf(" (The restart marker could not be written: %v; verify_server_restarted will not find it.)", err)
	}
	b.say(c, text, false)
	b.Restart(b.now, supervise.SourceTool, reason)
}

// runVerify answers verify_server_restarted, or parks it while the restart it asks about is still running.
func (b *Backend) runVerify(c *call) {
	b.tools.verify = append(b.tools.verify, parkedCall{c, c.seq})
	b.arm(timerVerify, verifyFor)
	b.answerVerify(false)
}

// answerVerify answers the parked calls that can be answered now; all of them if late.
func (b *Backend) answerVerify(late bool) {
	parkedNow := b.tools.verify
	b.tools.verify = nil
	for _, c := range parkedNow {
		if !b.stillThere(c) {
			continue
		}
		if text, isError, wait := b.verdict(c.call); !wait || late {
			b.say(c.call, text, isError)
		} else {
			b.tools.verify = append(b.tools.verify, c)
		}
	}
	if len(b.tools.verify) == 0 {
		b.disarm(timerVerify)
	}
}

// stillThere reports whether a parked call was not cancelled meanwhile.
func (b *Backend) stillThere(c parkedCall) bool {
	return c.call.seq == c.seq && c.state == parked && c.isRequest()
}

// verdict says what verify_server_restarted is to answer; wait means that a running restart may still change it.
func (b *Backend) verdict(c *call) (text string, isError, wait bool) {
	params := c.param.Of(c.line)
	since, err := restart.ParseTime(argument(params, "since_timestamp"))
	if err != nil {
		return "❌ since_timestamp: " + err.Error(), true, false
	}
	marker, err := b.world.ReadMarker()
	pending := b.Restarting()
	own := b.tools.request.marker
	if err == nil && own.Timestamp.After(since) {
		marker = own // the file may be that of another server, which shares the directory
	} else {
		pending = pending || b.misfortune.at.Before(marker.Timestamp) // the server may have written it, and is about to exit
	}
	proof := restart.Proof{Ready: b.restartedSince(marker), Detail: b.detail()}
	text, isError = restart.VerifyText(marker, err, b.world.MarkerPath(), since, proof)
	fresh := err == nil && marker.Timestamp.After(since)
	return text, isError, fresh && !proof.Ready && !b.hopeless() && pending
}

// restartedSince reports whether a process serves that was started after that restart was requested, and after the last
// one that the agent asked for. One that was starting already may have read the old code. Of a request of our own the
// generations tell; the clock may have been set.
func (b *Backend) restartedSince(marker restart.MarkerRecord) bool {
	p, last := b.process, b.tools.request
	switch {
	case !p.answered || !p.up:
		return false
	case last.marker.Timestamp.IsZero():
		return p.started.After(marker.Timestamp)
	case marker == last.marker:
		return p.gen > last.newest
	}
	return p.gen > last.newest && p.started.After(marker.Timestamp)
}

func argument(params []byte, name string) string {
	s, _ := jsonrpc.Unquote(jsonrpc.FindPath(params, "arguments", name).Of(params))
	return s
}

// detail says how the server stands, for an answer that must say why it is not there.
func (b *Backend) detail() string {
	snap := b.machine.Snapshot()
	text := "server is " + snap.State.String()
	if f := b.misfortune; !f.at.IsZero() {
		return text + ", but it is the old one: the new one did not come up: " + f.text()
	}
	if snap.State == supervise.Serving {
		text += ", but it was started before that"
	}
	if b.lastOut.why != "" {
		text += ", " + b.describeExit() + b.stderrText()
	}
	return text
}
