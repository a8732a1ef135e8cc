package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// The table of the package's comment, row by row.
func TestJudge(t *testing.T) {
	type fate struct {
		Act    action
		Undone bool
		Lost   bool
		After  time.Duration
	}
	call := question{kind: jsonrpc.Request, method: mcp.ToolsCall, id: []byte("1"), try: 1, session: true, place: "http://h/…"}
	modern := func(m mcp.Method, try int) question {
		return question{kind: jsonrpc.Request, method: m, id: []byte("1"), try: try, modern: true}
	}
	in := func(q question, m mcp.Method, try int) question { q.method, q.try = m, try; return q }
	late := func(q question, since, failing time.Duration) question {
		q.try, q.since, q.failing = max(q.try, 2), since, failing
		return q
	}
	repeated := func(q question, times int) question { q.try, q.repeats = times+1, times; return q }
	old := call
	old.old = true
	note := question{kind: jsonrpc.Notification, method: mcp.NoteProgress, try: 1, session: true}
	refusedConn := outcome{err: errors.New("refused")}
	broke := outcome{written: true, err: errors.New("reset")}
	status := func(code int, body string) outcome {
		return outcome{written: true, status: code, body: []byte(body), header: http.Header{}}
	}
	later := func(code int, seconds string) outcome {
		o := status(code, "")
		o.header.Set("Retry-After", seconds)
		return o
	}
	const own = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no session of that method"}}`
	const pause = firstPause / 2 // without chance
	for _, tc := range []struct {
		name string
		q    question
		o    outcome
		want fate
	}{
		{"answered", call, outcome{answered: true}, fate{Act: finish}},
		{"not written", call, refusedConn, fate{Act: again, Undone: true, After: pause}},
		{"not written, third try", in(call, mcp.ToolsCall, 3), refusedConn, fate{Act: again, Undone: true, After: 4 * pause}},
		{"not written, tenth try", in(call, mcp.ToolsCall, 10), refusedConn, fate{Act: again, Undone: true, After: longestPause / 2}},
		{"not written, and nothing else is", late(call, time.Second, unreachableFor), refusedConn, fate{Act: end, Undone: true}},
		{"not written, first try, and nothing else is", func() question { q := late(call, 0, time.Minute); q.try = 1; return q }(), refusedConn, fate{Act: again, Undone: true, After: pause}},
		{"not written for long, others are", late(call, retryFor, 0), refusedConn, fate{Act: answer, Undone: true, After: 2 * pause}},
		{"not written, initialize", in(call, mcp.Initialize, 1), refusedConn, fate{Act: again, Undone: true, After: pause}},
		{"not written, discover, and nothing else is", late(modern(mcp.Discover, 3), 3*time.Second, 3*time.Second), refusedConn, fate{Act: end, Undone: true}},
		{"not written, notification", note, refusedConn, fate{Act: again, Undone: true, After: pause}},
		{"broke off", call, broke, fate{Act: doubt, After: pause}},
		{"broke off, second time", repeated(call, 1), broke, fate{Act: doubt, After: 2 * pause}},
		{"broke off, third time", repeated(call, 2), broke, fate{Act: answer}},
		{"broke off, as all for a while", late(call, brokenFor, brokenFor), broke, fate{Act: end}},
		{"broke off, first try after a silence", func() question { q := late(call, 0, time.Hour); q.try = 1; return q }(), broke, fate{Act: doubt, After: pause}},
		{"broke off, notification", note, broke, fate{Act: doubt, After: pause}},
		{"broke off, 2024-11-05", old, broke, fate{Act: end}},
		{"notification not accepted in time", note, outcome{written: true, err: context.DeadlineExceeded}, fate{Act: answer}},
		{"broke off, modern", modern(mcp.ToolsCall, 1), broke, fate{Act: doubt, After: pause}},
		{"broke off, initialize", in(call, mcp.Initialize, 1), broke, fate{Act: again, After: pause}},
		{"broke off, initialize, for long", late(in(call, mcp.Initialize, 9), brokenFor, 0), broke, fate{Act: end}},
		{"broke off, initialized", in(note, mcp.NoteInitialized, 3), broke, fate{Act: again, After: 4 * pause}},
		{"broke off, listen", modern(mcp.Listen, 9), broke, fate{Act: again, After: relisten}},
		{"ended, listen", modern(mcp.Listen, 1), outcome{written: true, ended: true}, fate{Act: again, After: relisten}},
		{"ended", call, outcome{written: true, ended: true}, fate{Act: doubt, After: pause}},
		{"502", call, status(502, ""), fate{Act: doubt, After: pause}},
		{"503", call, status(503, ""), fate{Act: doubt, After: pause}},
		{"504", call, status(504, ""), fate{Act: doubt, After: pause}},
		{"503, third time", repeated(call, 2), status(503, ""), fate{Act: answer}},
		{"503 for soon", call, later(503, "2"), fate{Act: again, Undone: true, After: 2 * time.Second}},
		{"503 for later", call, later(503, "60"), fate{Act: answer, Undone: true, After: time.Minute}},
		{"503 for soon, again and again", late(call, 9*time.Second, 9*time.Second), later(503, "2"), fate{Act: answer, Undone: true, After: 2 * time.Second}},
		{"503 with an error", call, status(503, own), fate{Act: answer}},
		{"429", call, status(429, ""), fate{Act: again, Undone: true, After: pause}},
		{"429 for later", call, later(429, "3600"), fate{Act: answer, Undone: true, After: time.Hour}},
		{"404 in a session", call, status(404, ""), fate{Act: end, Undone: true, Lost: true}},
		{"404 in a session, method not found", call, status(404, own), fate{Act: answer, Undone: true}},
		{"404 in a session, method not found, the id as text", call, status(404, strings.Replace(own, `"id":1`, `"id":"1"`, 1)), fate{Act: answer, Undone: true}},
		{"404 in a session, no such resource", call, status(404, strings.Replace(own, "-32601", "-32002", 1)), fate{Act: answer, Undone: true}},
		{"404 in a session, bad parameters", call, status(404, strings.Replace(own, "-32601", "-32602", 1)), fate{Act: answer, Undone: true}},
		{"404 in a session, with an error to the request about it", call, status(404, strings.Replace(own, "-32601", "-32001", 1)), fate{Act: end, Undone: true, Lost: true}},
		{"400 about the session", call, status(400, "No valid session ID"), fate{Act: end, Undone: true, Lost: true}},
		{"400 about the request", call, status(400, own), fate{Act: answer, Undone: true}},
		{"404 without a session", in(question{kind: jsonrpc.Request}, mcp.ToolsCall, 1), status(404, ""), fate{Act: answer, Undone: true}},
		{"401", call, status(401, ""), fate{Act: answer, Undone: true}},
		{"403", call, status(403, ""), fate{Act: answer, Undone: true}},
		{"no token", call, outcome{auth: errors.New("no")}, fate{Act: answer, Undone: true}},
		{"400, initialize", modern(mcp.Initialize, 1), status(400, ""), fate{Act: fallBack, Undone: true}},
		{"405, initialize", modern(mcp.Initialize, 1), status(405, ""), fate{Act: fallBack, Undone: true}},
		{"415, initialize", modern(mcp.Initialize, 1), status(415, ""), fate{Act: fallBack, Undone: true}},
		{"403, initialize", modern(mcp.Initialize, 1), status(403, ""), fate{Act: fallBack, Undone: true}},
		{"401, initialize", modern(mcp.Initialize, 1), status(401, ""), fate{Act: answer, Undone: true}},
		{"501, initialize", modern(mcp.Initialize, 1), status(501, ""), fate{Act: fallBack, Undone: true}},
		{"500, initialize", modern(mcp.Initialize, 1), status(500, ""), fate{Act: doubt, After: pause}},
		{"404, initialize, 2024-11-05", func() question { q := modern(mcp.Initialize, 1); q.old = true; return q }(), status(404, ""), fate{Act: answer, Undone: true}},
		{"404, initialize, nothing else is tried", func() question { q := modern(mcp.Initialize, 1); q.onlyOld = true; return q }(), status(404, ""), fate{Act: answer, Undone: true}},
		{"no stream of 2024-11-05", call, outcome{strange: "no endpoint"}, fate{Act: answer, Undone: true}},
		{"400 with an error, initialize", modern(mcp.Initialize, 1), status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`), fate{Act: answer, Undone: true}},
		{"413", call, status(413, ""), fate{Act: answer, Undone: true}},
		{"307", call, status(307, ""), fate{Act: answer, Undone: true}},
		{"500", call, status(500, ""), fate{Act: doubt, After: pause}},
		{"500, third time", repeated(call, 2), status(500, ""), fate{Act: answer}},
		{"501", call, status(501, ""), fate{Act: answer, Undone: true}},
		{"500 with an error", call, status(500, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}`), fate{Act: answer}},
		{"too long", call, outcome{written: true, tooLong: true}, fate{Act: answer}},
		{"no message", call, outcome{written: true, strange: "HTML"}, fate{Act: doubt, After: pause}},
		{"headers", modern(mcp.ToolsCall, 1), status(400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"x"}}`), fate{Act: relist, Undone: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := judge(tc.q, tc.o)
			if diff := cmp.Diff(tc.want, fate{v.act, v.undone, v.lostSession, v.after}); diff != "" {
				t.Error(diff)
			}
			if v.act == end && v.why == "" {
				t.Error("an end without a reason")
			}
		})
	}
}

func TestRetryAfterHeader(t *testing.T) {
	for _, tc := range []struct {
		after, date string
		want        time.Duration
		ok          bool
	}{
		{"3", "", 3 * time.Second, true},
		{"999999999", "", 24 * time.Hour, true},
		{"-1", "", 0, false},
		{"", "", 0, false},
		{"soon", "", 0, false},
		{"Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 30 * time.Second, true},
		{"Wed, 21 Oct 2026 07:27:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 0, true},
		{"Wed, 21 Oct 2026 07:28:30 GMT", "", unknownDate, true},
	} {
		got, ok := retryAfter(http.Header{"Retry-After": {tc.after}, "Date": {tc.date}})
		if got != tc.want || ok != tc.ok {
			t.Errorf("%q at %q: %v %v, want %v %v", tc.after, tc.date, got, ok, tc.want, tc.ok)
		}
	}
}
