package bridge

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// hasNotAnswered is why a question that the client was shown comes to nothing.
const hasNotAnswered = "the client did not answer"

// put gives a call a question of the server. If the client waits, that is its answer; the call waits at the server.
func (s *modernSide) put(t *task, q *question) {
	if t.Round+1 > roundsMost && !t.parked() || len(t.Next) >= queueMost {
		s.decline(q, "the client is not asked more than "+strconv.Itoa(roundsMost)+" times in one call")
		return
	}
	t.Next = append(t.Next, q)
	if !t.parked() {
		s.park(t)
	}
}

// park answers the client with what the server asks.
func (s *modernSide) park(t *task) {
	if t.Number == 0 {
		s.Number++
		t.Number = s.Number
	}
	t.Round++
	t.Asks, t.Next = append(t.Asks, t.Next...), nil
	t.Expires = s.now.Add(answerFor)
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range t.Asks {
		if i > 0 {
			out = append(out, ',')
		}
		q.Key = "ask" + strconv.Itoa(i+1)
		out = append(append(out, '"'), q.Key+`":`...)
		out = append(out, modernAsk(q.Method, q.Params)...)
	}
	out = append(out, `},"requestState":`...)
	out = append(append(out, s.seal(t.Party).seal(t.Number, t.Round, t.Expires, digestOf(t.Name, t.Params))...), '}')
	s.toClient(jsonrpc.AppendResult(nil, t.ID, out))
	t.ID, t.Token, t.Level = nil, nil, -1
}

// resume takes a call's next round: the client's answers go to the server, which goes on.
func (s *modernSide) resume(id, line, meta []byte, came time.Time) {
	t := s.meant(line, came)
	if t == nil {
		s.refuse(id, jsonrpc.InvalidParams, expired)
		return
	}
	answers := s.env.InputResponses.Of(line)
	t.ID, t.Meta = bytes.Clone(id), bytes.Clone(meta)
	t.Token, t.Level = bytes.Clone(member(meta, "progressToken")), severity(member(meta, mcp.MetaLogLevel))
	t.Can = abilitiesOf(member(meta, mcp.MetaClientCapabilities))
	t.Fresh = s.now
	if t.Behind != nil && s.env.Scan(t.Behind) == nil {
		s.progressed(t.Behind)
	}
	switch {
	case t.Finished != nil:
		s.answerOthers(t, answers)
		if s.env.Scan(t.Finished) == nil {
			s.finish(t, t.Finished)
		}
	case t.Afresh:
		s.beginAgain(t, answers)
	default:
		s.feed(t, answers)
	}
	s.proceed()
}

// meant returns the parked call that a request, of which s.env is, goes on with; nil if it has no right to any. came is
// when the client sent it.
func (s *modernSide) meant(line []byte, came time.Time) *task {
	name, _ := jsonrpc.Unquote(s.env.Method.Of(line))
	who := s.seal(s.partyOf(s.env.Meta.Of(line)))
	number, round, ok := who.open(s.env.RequestState.Of(line), came, digestOf(name, s.env.Params.Of(line)))
	if t := s.numbered(number); ok && t != nil && t.parked() && t.Round == round {
		return t
	}
	return nil
}

// numbered returns the call with this number in its handles.
func (s *modernSide) numbered(number uint64) *task {
	for _, t := range s.Calls {
		if t.Number == number && number > 0 {
			return t
		}
	}
	return nil
}

// feed gives the server the client's answers. What is missing is asked again.
func (s *modernSide) feed(t *task, answers []byte) {
	s.verbosity()
	var missing []*question
	for _, q := range t.Asks {
		value := member(answers, q.Key)
		if !jsonrpc.IsObject(value) {
			missing = append(missing, q)
			continue
		}
		s.sendOf(t, jsonrpc.AppendResult(nil, q.ID, legacyAnswer(q.Method, s.Version, value)), false)
	}
	t.Asks = missing
	if len(missing) == 0 && len(t.Next) == 0 {
		return
	}
	if t.Round >= roundsMost {
		for _, q := range append(t.Asks, t.Next...) {
			s.decline(q, hasNotAnswered)
		}
		t.Asks, t.Next = nil, nil
		return
	}
	s.park(t)
}

// openURLs answers a call that the server has refused until the client opens some URLs. It reports whether the client
// can.
func (s *modernSide) openURLs(t *task, err []byte) bool {
	wanted := member(err, "data", "elicitations")
	if !t.Open || t.Can&canURL == 0 || t.Round >= roundsMost {
		return false
	}
	for at := range jsonrpc.Elements(wanted) {
		params := set(bytes.Clone(at.Of(wanted)), []byte(`"url"`), "mode")
		t.Next = append(t.Next, &question{Method: askForm, Params: params, Need: canURL})
	}
	if len(t.Next) == 0 {
		return false
	}
	t.Afresh = true
	s.park(t)
	return true
}

// beginAgain sends the server a call that it has refused once more, if the client has opened what was to be opened.
func (s *modernSide) beginAgain(t *task, answers []byte) {
	for _, q := range t.Asks {
		if !jsonrpc.EqualString(member(answers, q.Key, "action"), "accept") {
			delete(s.Calls, t.Wire)
			s.toClient(failed(t.Method, mcp.Modern, t.ID, "The server wants a URL to be opened first, and that was declined."))
			return
		}
	}
	delete(s.Calls, t.Wire)
	t.Asks, t.Afresh = nil, false
	t.Wire = string(s.private())
	t.Params = withoutReserved(t.Params, "progressToken")
	t.mark()
	s.Calls[t.Wire] = t
	s.verbosity()
	s.sendOf(t, jsonrpc.AppendRequest(nil, []byte(t.Wire), t.Name, t.Params), true)
}

// inOrder returns the calls by their ids on the wire, so that what happens at once happens in one order.
func (s *modernSide) inOrder() []*task {
	out := make([]*task, 0, len(s.Calls))
	for _, t := range s.Calls {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *task) int { return cmp.Compare(a.Wire, b.Wire) })
	return out
}

func (s *modernSide) tick() {
	s.expireAsks()
	if s.due(s.Leveling.Until) {
		s.levelNow()
	}
	for _, t := range s.inOrder() {
		if !t.parked() || !s.due(t.Expires) {
			continue
		}
		if t.Finished == nil && !t.Afresh {
			s.toServer(mcp.CancelledLine([]byte(t.Wire), "the client did not answer in time"))
			s.drop(t)
		}
		s.answerOthers(t, nil)
		delete(s.Calls, t.Wire)
	}
	s.proceed()
}

func (s *modernSide) deadline() time.Time {
	at := s.Leveling.Until
	for _, t := range s.Calls {
		if t.parked() {
			at = earlier(at, t.Expires)
		}
	}
	for _, q := range s.Asks {
		at = earlier(at, q.Until)
	}
	if s.Shared && len(s.Queue) > 0 {
		at = earlier(at, s.headStart(s.Queue[0].Target))
	}
	return earlier(at, s.Ruling)
}
