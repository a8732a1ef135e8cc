package bridge

import (
	"cmp"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// What is different where many clients share a legacy server: nothing that it asks or logs may reach another client than
// the one it is meant for (attribution.go says how that is told). Calls do not take turns, because one client's long call
// is no other client's business; but those of tools that have asked before give each other a moment. The server is told in
// its handshake that it may ask anything, so that it is not started anew for the first client that can be asked; what the
// client of a call cannot be asked is refused.

const (
	// gatherFor is how long questions are collected before it is looked whose they are: a server may ask several things
	// at once, and then they belong into one answer to the client. It is too short to be noticed.
	gatherFor = 100 * time.Millisecond
	// crossFor is how long a cancellation and a question may be under way towards each other.
	crossFor = 2 * time.Second
	// headStartFor is how long a call of what is known to ask waits until an earlier one has asked, so that it is clear
	// which of them does.
	headStartFor = 2 * time.Second
	// knownMost is how much is known to ask.
	knownMost = 1024
	// ghostFor is how long a server may work on a call that was withdrawn, and ask for it, without ever answering it, as
	// many do that were made with the TypeScript SDK. That long is for what has asked before; anything else gets unclearFor.
	ghostFor = answerFor
)

// everyAbility is what a shared server is told that its clients can be asked for; not canSampleContext, by which it would
// ask for what other servers have said.
const everyAbility = canRoots | canSample | canSampleTools | canForm | canURL

// ghost is a call that was withdrawn, and that the server has not answered.
type ghost struct {
	Wire  string // raw id at the server
	Party party
	At    time.Time // when it was withdrawn
	Until time.Time // when it is taken to have ended
}

// newCrowd returns the side of many clients.
func newCrowd(c *core, seal sealer) *modernSide {
	s := newModernSide(c, seal)
	s.Shared, s.Can, s.Known = true, everyAbility, map[string]bool{}
	return s
}

// target is what a request, of which s.env is, calls, where that matters.
func (s *modernSide) target(line []byte) string {
	if !s.Shared {
		return ""
	}
	return string(s.env.Method.Of(line)) + string(s.env.Name.Of(line))
}

// headStart returns when a call of what is known to ask must not wait any longer for an earlier one, which may ask any
// moment; zero if it need not wait.
func (s *modernSide) headStart(target string) (until time.Time) {
	if !s.Known[target] {
		return until
	}
	for _, t := range s.Calls {
		if end := t.Fresh.Add(headStartFor); s.Known[t.Target] && !t.parked() && !s.due(end) {
			until = earlier(until, end)
		}
	}
	return until
}

// partyOf reads who is behind a request from its raw _meta.
func (s *modernSide) partyOf(meta []byte) party {
	if !s.Shared {
		return party{}
	}
	principal, _ := jsonrpc.Unquote(member(meta, mcp.MetaPrincipal))
	return party{Principal: principal, Info: string(member(meta, mcp.MetaClientInfo))}
}

// seal is what makes and checks the handles of who is behind a request: nobody can use what another one was given.
func (s *modernSide) seal(p party) sealer {
	out := s.sealer
	if s.Shared {
		out.client += string(jsonrpc.AppendQuoted(nil, p.Principal)) + p.Info
	}
	return out
}

// mourn remembers a call that the server may still be working on. What it was taken to have asked may be another call's,
// of the same party.
func (s *modernSide) mourn(t *task) {
	s.lookAgain(append(t.Asks, t.Next...))
	t.Asks, t.Next = nil, nil
	s.Ghosts = slices.DeleteFunc(s.Ghosts, func(g ghost) bool { return s.due(g.Until.Add(unclearFor)) }) // no question has it
	if len(s.Ghosts) >= queueMost {
		s.crowdOfGhosts()
	}
	stays := unclearFor
	if s.Known[t.Target] {
		stays = ghostFor
	}
	s.Ghosts = append(s.Ghosts, ghost{Wire: t.Wire, Party: t.Party, At: s.now, Until: s.now.Add(stays)})
}

// crowdOfGhosts makes one of all ghosts, which are too many to be told apart, and so no answer clears it: forgetting the
// oldest would let whoever withdraws enough calls hear of another one's.
func (s *modernSide) crowdOfGhosts() {
	for _, q := range s.Asks {
		s.toServer(refused(undecided, q.ID))
	}
	s.Asks = nil
	s.Ghosts = []ghost{{At: s.now, Until: s.now.Add(ghostFor)}}
}

// rest lets a ghost go soon: it has asked, and was told that nobody waits for it.
func (s *modernSide) rest(wire string) {
	i := slices.IndexFunc(s.Ghosts, func(g ghost) bool { return g.Wire == wire })
	if i < 0 {
		return
	}
	s.Ghosts = slices.Clone(s.Ghosts)
	s.Ghosts[i].Until = earlier(s.Ghosts[i].Until, s.now.Add(crossFor))
}

// lookAgain keeps questions that turn out to be another call's.
func (s *modernSide) lookAgain(questions []*question) {
	for _, q := range questions {
		q.Until = s.now.Add(unclearFor)
		s.Asks = append(s.Asks, q)
	}
}

// leftOver deals with the questions of a call that the server has answered while its client was being asked. With one
// client they were for nothing. With many they are another call's of the same party; what the client was shown it will
// answer with the call that it was shown it in.
func (s *modernSide) leftOver(t *task) {
	if !s.Shared {
		t.Asks, t.Next = nil, nil
		return
	}
	s.lookAgain(t.Next)
	t.Next = nil
	s.proceed()
}

// answerOthers hands on what the client has answered with a call that the server has finished meanwhile.
func (s *modernSide) answerOthers(t *task, answers []byte) {
	if !s.Shared || t.Finished == nil {
		return
	}
	for _, q := range t.Asks {
		if value := member(answers, q.Key); jsonrpc.IsObject(value) {
			s.toServer(jsonrpc.AppendResult(nil, q.ID, legacyAnswer(q.Method, s.Version, value)))
		} else {
			s.decline(q, hasNotAnswered)
		}
	}
	t.Asks = nil
}

// over takes the server's late answer to a call that was withdrawn.
func (s *modernSide) over(id []byte) {
	was := len(s.Ghosts)
	s.Ghosts = slices.DeleteFunc(s.Ghosts, func(g ghost) bool { return jsonrpc.SameID([]byte(g.Wire), id) })
	if len(s.Ghosts) < was {
		s.proceed()
	}
}

// reborn forgets the ghosts: there is a new process, and it has not heard of them.
func (s *modernSide) reborn() {
	s.Ghosts = nil
	s.proceed()
}

// haunting are the ghosts that what the server says now could belong to. Once a question can have crossed with the
// cancellation no more, those of a client are left out if all calls are its own; that leaves a doubt.
func (s *modernSide) haunting(calls []*task) (out []ghost, doubt bool) {
	for _, g := range s.Ghosts {
		own := !slices.ContainsFunc(calls, func(t *task) bool { return !t.Party.alike(g.Party) })
		switch {
		case s.due(g.Until):
		case own && s.due(g.At.Add(crossFor)):
			doubt = true
		default:
			out = append(out, g)
		}
	}
	return out, doubt
}

// blocked reports whether the call has certainly asked something that is not answered yet.
func (t *task) blocked() bool {
	return t.parked() && slices.ContainsFunc(slices.Concat(t.Asks, t.Next), func(q *question) bool { return !q.Doubt })
}

// suspects are the calls, by their ids on the wire, that what the server asks now may belong to. One that waits for an
// answer of its client is none, unless the server works on nothing else: a tool asks again when it has its answer. If the
// server has withdrawn what it asked, or died and begins the call once more, the call waits for no answer.
func (s *modernSide) suspects() (wires []string, doubt bool) {
	var running, blocked []*task
	for _, t := range s.byAge() {
		switch {
		case t.Afresh || t.Finished != nil:
		case t.blocked():
			blocked = append(blocked, t)
		default:
			running = append(running, t)
		}
	}
	ghosts, doubt := s.haunting(running)
	if len(running) == 0 {
		if ghosts, doubt = s.haunting(blocked); len(ghosts) == 0 {
			running = blocked
		}
	}
	for _, t := range running {
		wires = append(wires, t.Wire)
	}
	for _, g := range ghosts {
		wires = append(wires, g.Wire)
	}
	return wires, doubt
}

// byAge returns the calls in the order in which they went to the server.
func (s *modernSide) byAge() []*task {
	out := s.inOrder()
	slices.SortStableFunc(out, func(a, b *task) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(len(a.Wire), len(b.Wire))) })
	return out
}

// gather keeps a question of the server until it is looked whose it is.
func (s *modernSide) gather(q *question) {
	q.Came = s.now
	q.Suspects, q.Doubt = s.suspects()
	s.Asks = append(s.Asks, q)
	if s.Ruling.IsZero() {
		s.Ruling = s.now.Add(gatherFor)
	}
}

// rule gives questions to the calls they belong to, as far as that is certain, unless more may come at once.
func (s *modernSide) rule() {
	if !s.Ruling.IsZero() && !s.due(s.Ruling) {
		return
	}
	s.Ruling = time.Time{}
	var given []*task
	for {
		questions, suspects, wires := s.docket()
		r, ok := attribute(questions, suspects)
		if !ok {
			break
		}
		q := s.Asks[r.question]
		s.Asks = slices.Delete(slices.Clone(s.Asks), r.question, r.question+1)
		if r.verdict != give {
			s.toServer(refused(r.verdict, q.ID))
			if r.verdict == withdrawn && r.certain {
				s.rest(wires[r.suspect])
			}
			continue
		}
		t := s.Calls[wires[r.suspect]]
		if t.Round+1 > roundsMost && !t.parked() || len(t.Next) >= queueMost {
			s.put(t, q) // which declines it
			continue
		}
		q.Doubt = q.Doubt || !r.certain
		t.Next = append(t.Next, q)
		if !slices.Contains(given, t) {
			given = append(given, t)
		}
		if q.Doubt {
			continue
		}
		s.clear(q, t)
		if len(s.Known) < knownMost {
			s.Known[t.Target] = true
		}
	}
	for _, t := range given {
		if !t.parked() {
			s.park(t)
		}
	}
	s.hurry()
}

// hurry shortens the wait of questions that only the answer to a withdrawn call can clear: it comes at once or never.
func (s *modernSide) hurry() {
	questions, suspects, _ := s.docket()
	for i, q := range questions {
		living := 0
		for _, one := range q.suspects {
			if !suspects[one].gone {
				living++
			}
		}
		if living < 2 {
			s.Asks[i].Until = earlier(s.Asks[i].Until, s.now.Add(crossFor))
		}
	}
}

// clear takes a call that has asked q out of the suspects of those questions that did not come together with it.
func (s *modernSide) clear(q *question, t *task) {
	for _, other := range s.Asks {
		if other.Came.Sub(q.Came).Abs() > gatherFor {
			other.Suspects = slices.DeleteFunc(slices.Clone(other.Suspects), func(wire string) bool { return wire == t.Wire })
		}
	}
}

// docket is the questions that wait, and who may have asked them, as attribute wants them; wires are the ids of the
// suspects. A call that the server has answered since is none any more.
func (s *modernSide) docket() (questions []inquiry, suspects []suspect, wires []string) {
	for _, q := range s.Asks {
		one := inquiry{need: q.Need}
		for _, wire := range q.Suspects {
			at := slices.Index(wires, wire)
			if at < 0 {
				who, left := s.suspect(wire)
				if !left {
					continue
				}
				at = len(wires)
				wires, suspects = append(wires, wire), append(suspects, who)
			}
			one.suspects = append(one.suspects, at)
		}
		questions = append(questions, one)
	}
	return questions, suspects, wires
}

// suspect looks up a call by its id on the wire; left reports whether the server still works on it.
func (s *modernSide) suspect(wire string) (one suspect, left bool) {
	if t := s.Calls[wire]; t != nil {
		one.party, one.asked = t.Party, len(t.Asks)+len(t.Next) > 0
		if t.Open {
			one.can = t.Can
		}
		return one, !t.Afresh && t.Finished == nil
	}
	i := slices.IndexFunc(s.Ghosts, func(g ghost) bool { return g.Wire == wire })
	if i < 0 {
		return one, false
	}
	return suspect{party: s.Ghosts[i].Party, gone: true}, true
}

// refused answers a question that goes to no client.
func refused(v verdict, id []byte) []byte {
	code, text := jsonrpc.InternalError, "the client cannot be asked now: several calls wait for questions, and which is whose is not clear"
	switch v {
	case unable:
		return notFound(id)
	case noCall:
		code, text = jsonrpc.MethodNotFound, "many clients share this server: they can be asked during their calls only"
	case withdrawn:
		text = "the client does not wait for this any more"
	}
	return jsonrpc.AppendError(nil, id, code, text, nil)
}

// overheard hands a log message on if it can only belong to one call, which asked for its level.
func (s *modernSide) overheard(line []byte) {
	calls := s.inOrder()
	if ghosts, _ := s.haunting(calls); len(calls) != 1 || calls[0].parked() || len(ghosts) > 0 {
		return
	}
	if t := calls[0]; t.Level >= 0 && severity(s.env.Level.Of(line)) >= t.Level {
		s.toClient(s.plain(line))
	}
}
