package backend

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// verifyFor is how long verify_server_restarted waits for a restart that has begun.
	verifyFor = 10 * time.Second
	// settleFor is how long the server may take to list its tools before a call of an injected name goes to outlive's
	// tool.
	settleFor = 2 * time.Second
	// ownPrefix is put before an injected tool's name if the server has a tool of that name.
	ownPrefix = "outlive_"
	// joinedMost is the longest page that is cached, in bytes.
	joinedMost = 128 << 10
)

// restartTools is the injected tools as the client sees them.
type restartTools struct {
	*core

	settled bool        // the server's tools are known, so the names are final
	shown   []shownTool // in their fixed order
	page    joinedPage  // the last one, which servers usually repeat byte for byte, even after a restart
	request request     // the last call of restart_server
}

// request is a restart requested by the agent.
type request struct {
	marker restart.MarkerRecord // as it was written; zero: none was requested
	newest int                  // the newest process then: later ones were started after the request
}

// shownTool is an injected tool under the name the client knows.
type shownTool struct {
	tool restart.Tool
	name string
}

// joinedPage is a tools/list result as the server wrote it, and with the injected tools, whose names depend on it.
type joinedPage struct{ theirs, joined []byte }

func (t *restartTools) init() {
	for _, tool := range restart.Tools() {
		t.shown = append(t.shown, shownTool{tool, string(tool)})
	}
}

// avoid chooses names that the server does not use.
func (t *restartTools) avoid(theirs mcp.Catalog) {
	for i := range t.shown {
		one := &t.shown[i]
		one.name = string(one.tool)
		if _, taken := theirs[one.name]; taken {
			one.name = ownPrefix + one.name
		}
	}
}

// json returns the raw tool objects in their fixed order.
func (t *restartTools) json() [][]byte {
	if t.opts.NoTools {
		return nil
	}
	var out [][]byte
	for _, one := range t.shown {
		out = append(out, restart.ToolJSON(one.tool, one.name))
	}
	return out
}

// named returns the injected tool that the client knows by name.
func (t *restartTools) named(name []byte) (restart.Tool, bool) {
	if t.opts.NoTools {
		return "", false
	}
	for _, one := range t.shown {
		if jsonrpc.EqualString(name, one.name) {
			return one.tool, true
		}
	}
	return "", false
}

// settle makes the names final. theirs is nil if they were chosen already.
func (t *restartTools) settle(theirs mcp.Catalog) {
	if theirs != nil {
		t.avoid(theirs)
	}
	t.settled = true
}

// joinPage returns the first page of a tools/list with the injected tools, under names that are not on it.
func (t *restartTools) joinPage(line []byte) []byte {
	result, theirs := t.env.Result.Of(line), mcp.Catalog{}
	t.reader.AddPage(theirs, mcp.Tools, result)
	t.avoid(theirs)
	if page := t.page; len(result) > 0 && bytes.Equal(page.theirs, result) {
		return t.withResult(line, page.joined)
	}
	at := jsonrpc.Find(result, "tools")
	if t.opts.NoTools || !jsonrpc.IsArray(at.Of(result)) {
		return line
	}
	longer := jsonrpc.AppendElements(nil, at.Of(result), t.json()...)
	joined := jsonrpc.Replace(nil, result, at, longer)
	if len(joined) <= joinedMost {
		t.page = joinedPage{bytes.Clone(result), joined}
	}
	return t.withResult(line, joined)
}

func (t *restartTools) ownToolsResult() []byte {
	out := []byte(`{`)
	if t.session.Era == mcp.Modern {
		out = append(out, `"resultType":"complete","ttlMs":0,"cacheScope":"private",`...)
	}
	out = append(out, `"tools":[`...)
	out = append(out, bytes.Join(t.json(), []byte(","))...)
	return append(out, "]}"...)
}

// listToolsAlone answers tools/list for a server that has no tools. One that declares none is asked first, for as long as
// settleFor: some have them all the same. The client would not be asked for them without outlive's own.
func (t *restartTools) listToolsAlone(c *call) bool {
	p := t.process
	if t.opts.NoTools || t.session.Era != mcp.Legacy || !t.session.Answered() || !p.through() || t.hasTools(p) {
		return false
	}
	if p.toolsAsked && t.timers[timerSettle].IsZero() {
		t.answerToolsAlone(c)
		return true
	}
	t.calls.set(c, unsure)
	if !p.toolsAsked {
		p.toolsAsked = true
		t.arm(timerSettle, settleFor)
		t.lists.readList(p, mcp.Tools, func(l mcp.List, theirs mcp.Catalog) { t.undeclaredTools(p, l, theirs) })
	}
	return true
}

// undeclaredTools takes the tools of a server that declares none; nil: it refuses to say.
func (t *restartTools) undeclaredTools(p *process, l mcp.List, theirs mcp.Catalog) {
	t.undeclared = t.undeclared || len(theirs) > 0
	switch {
	case len(theirs) == 0 || p.role != serving:
		t.settleCalls()
	case t.session.Seen[l] == nil:
		t.lists.learned(l, theirs)
	default:
		t.lists.verdictOn(l, theirs) // it was late, and the client has seen a list without them
	}
}

func (t *restartTools) answerToolsAlone(c *call) {
	t.settled = true
	result := t.ownToolsResult()
	t.session.SawPage(&t.reader, mcp.Tools, c.first, result)
	t.flow.answer(c, jsonrpc.AppendResult(nil, c.id, result))
}

// callTool answers a call of an injected tool. It reports false for every other tool.
func (t *restartTools) callTool(c *call) bool {
	name := c.tool.Of(c.line)
	tool, ok := t.named(name)
	if !ok {
		return false
	}
	if !t.settled && t.process.accepting() && (t.hasTools(t.process) || t.session.Era == mcp.Modern) {
		// The server may have a tool of that name, which comes first.
		t.calls.set(c, unsure)
		t.arm(timerSettle, settleFor)
		t.lists.lookAt(mcp.Tools, t.lists.learned)
		return true
	}
	t.runTool(c, tool)
	return true
}

// settleCalls handles the calls that waited for the server's list, by the names known now, with or without the list.
func (t *restartTools) settleCalls() {
	t.disarm(timerSettle)
	for c := range t.calls.in(unsure) {
		tool, ours := t.named(c.tool.Of(c.line))
		switch {
		case ours:
			t.runTool(c, tool)
		case c.method == mcp.ToolsList && !t.hasTools(t.process):
			t.answerToolsAlone(c)
		default:
			t.flow.queue(c)
		}
	}
	t.flow.flushQueue()
}

func (t *restartTools) runTool(c *call, tool restart.Tool) {
	params := c.param.Of(c.line)
	args := jsonrpc.Find(params, "arguments").Of(params)
	switch tool {
	case restart.RestartServer:
		t.runRestart(c, args)
	case restart.VerifyRestarted:
		t.calls.set(c, verifying) // it waits while the restart is still running
		t.arm(timerVerify, verifyFor)
		t.answerVerify(false)
	case restart.ServerStatus:
		t.say(c, jsonrpc.Indented(t.backend.Status(t.now)), false)
	}
}

func (t *restartTools) say(c *call, text string, isError bool) {
	t.flow.answer(c, jsonrpc.AppendResult(nil, c.id, mcp.ToolText(text, isError, t.session.Era, nil)))
}

// runRestart answers first and restarts afterwards: the answer is sent before the server is touched (RT-3).
func (t *restartTools) runRestart(c *call, args []byte) {
	reason, ok := jsonrpc.Unquote(jsonrpc.Find(args, "reason").Of(args))
	if !ok || strings.TrimSpace(reason) == "" {
		t.say(c, `❌ restart_server needs an argument "reason" (a string, not empty): why the server is to be restarted.`, true)
		return
	}
	marker := restart.RequestedMarker(t.now, reason)
	t.request = request{marker, t.machine.Newest()}
	err := t.world.WriteMarker(marker)
	attrs := []slog.Attr{slog.String(event.KeyReason, reason), slog.Int(event.KeyExitCode, restart.RestartExitCode),
		slog.String(event.KeyMarkerPath, t.world.MarkerPath())}
	if err != nil {
		attrs = append(attrs, slog.String(event.KeyError, err.Error()))
	}
	t.emit(event.ServerRestartRequested, slog.LevelInfo, "Server restart requested: "+reason, attrs...)
	text := restart.ScheduledText(reason)
	if err != nil {
		text += fmt.Sprintf(" (The restart marker could not be written: %v; verify_server_restarted will not find it.)", err)
	}
	t.say(c, text, false)
	t.life.restart(supervise.SourceTool, reason)
}

// answerVerify answers those calls of verify_server_restarted that are decided; all of them if late.
func (t *restartTools) answerVerify(late bool) {
	left := false
	for c := range t.calls.in(verifying) {
		if text, isError, wait := t.verdict(c); !wait || late {
			t.say(c, text, isError)
		} else {
			left = true
		}
	}
	if !left {
		t.disarm(timerVerify)
	}
}

// verdict is the answer of verify_server_restarted; wait means that a running restart may still change it.
func (t *restartTools) verdict(c *call) (text string, isError, wait bool) {
	params := c.param.Of(c.line)
	given, _ := jsonrpc.Unquote(jsonrpc.FindPath(params, "arguments", "since_timestamp").Of(params))
	since, err := restart.ParseTime(given)
	if err != nil {
		return "❌ since_timestamp: " + err.Error(), true, false
	}
	marker, err := t.world.ReadMarker()
	pending := t.life.restarting()
	own := t.request.marker
	if err == nil && own.Timestamp.After(since) {
		marker = own // the file may be another server's in the same directory
	} else {
		pending = pending || t.history.lastReloadFailure.at.Before(marker.Timestamp) // the server may have written it, and is about to exit
	}
	proof := restart.Proof{Ready: t.restartedSince(marker), Detail: t.detail()}
	text, isError = restart.VerifyText(marker, err, t.world.MarkerPath(), since, proof)
	fresh := err == nil && marker.Timestamp.After(since)
	return text, isError, fresh && !proof.Ready && !t.hopeless() && pending
}

// restartedSince reports whether the serving process was started after that restart was requested, and after the last
// one that the agent requested. One that was already starting may have loaded the old code. For our own requests the
// generations decide, since the clock may have been set.
func (t *restartTools) restartedSince(marker restart.MarkerRecord) bool {
	p, last := t.process, t.request
	switch {
	case !p.answered():
		return false
	case last.marker.Timestamp.IsZero():
		return p.started.After(marker.Timestamp)
	case marker == last.marker:
		return p.gen > last.newest
	}
	return p.gen > last.newest && p.started.After(marker.Timestamp)
}

// detail describes the server's state, for an answer that explains its absence.
func (t *restartTools) detail() string {
	snap := t.machine.Snapshot()
	text := "server is " + snap.State.String()
	if f := t.history.lastReloadFailure; !f.at.IsZero() {
		return text + ", but it is the old one: the new one did not come up: " + f.text()
	}
	if snap.State == supervise.Serving {
		text += ", but it was started before that"
	}
	if t.history.lastOut.why != "" {
		text += ", " + t.history.describeExit() + t.history.stderrText()
	}
	return text
}
