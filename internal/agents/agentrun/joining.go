package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// Limits of those who have joined.
const (
	mostJoined = 16
	// backlog is how much output waits for a client that does not read, in bytes. Beyond it the output is dropped, and
	// the whole screen is sent once the client reads again.
	backlog = 1 << 20
	// helloTime is how long a client may take to identify itself.
	helloTime = 5 * time.Second
	// goodbyeTime is how long clients may take to read the rest after the agent's end.
	goodbyeTime = time.Second
	// keysKept is how many messages of keys wait for an agent that does not read. Each has 4 KiB at most.
	keysKept = 256
	// keysTime is how long whoever types more than that waits for the agent. What is typed then is lost until it reads again.
	keysTime = 10 * time.Second
	// redrawPause is how long the agent's terminal gets another size to force a redraw, if joining does not change the
	// size. A program that checks its size only after that sees no change, and draws nothing.
	redrawPause = 150 * time.Millisecond
)

// shared is the agent's terminal with its joined clients ([Attach]). Their input goes to the agent, its output goes to
// all of them, and its size is that of the smallest window.
type shared struct {
	seen     *seen
	listener net.Listener
	keys     chan []byte // for the agent
	ctx      context.Context
	end      context.CancelFunc // of ctx: the agent has ended
	done     sync.WaitGroup
	// resize gives the agent's terminal a size.
	resize func(rows, cols int)
	// answers says that we answer the agent's terminal queries.
	answers bool

	mu     sync.Mutex
	joined []*joiner
	own    window // of the wrapper's own terminal; zero: it has none
	size   window // of the agent's terminal
	nudge  *time.Timer
	over   bool // no more clients are accepted
}

// joiner is somebody who has joined.
type joiner struct {
	conn   net.Conn
	is     Joined
	window window
	wake   chan struct{}

	// Under the lock of shared:
	queue  []byte // frames that are not sent yet
	behind bool   // too much was waiting: the whole screen is to be sent
	exit   *Exit  // the last to be sent
}

// share accepts clients of a terminal from now on. write gives bytes to the agent.
func share(s *seen, l net.Listener, answers bool, size window, resize func(rows, cols int), write func([]byte) error) *shared {
	if size.Rows == 0 || size.Cols == 0 { // unknown: a usual one
		size = window{Rows: 24, Cols: 80}
	}
	s.resize(size.Rows, size.Cols)
	sh := &shared{seen: s, listener: l, keys: make(chan []byte, keysKept), resize: resize, answers: answers, size: size}
	sh.ctx, sh.end = context.WithCancel(context.Background())
	sh.done.Go(func() { sh.handKeys(write) })
	if l != nil {
		sh.done.Go(sh.accept)
	}
	return sh
}

// handKeys writes typed input to the agent, and waits while the agent does not read.
func (sh *shared) handKeys(write func([]byte) error) {
	for {
		select {
		case b := <-sh.keys:
			if write(b) != nil {
				return
			}
		case <-sh.ctx.Done():
			return
		}
	}
}

// output records and distributes the agent's output.
func (sh *shared) output(b []byte, now time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.seen.output(0, b, now, sh.distribute)
	for _, j := range sh.joined {
		j.poke()
	}
}

// distribute sends a piece to all clients, or answers it. The caller has the lock, and that of what is seen.
func (sh *shared) distribute(p piece) {
	if p.kind == question {
		if answer, _ := p.reply(sh.seen.screen.place()); sh.answers && answer != "" {
			select {
			case sh.keys <- []byte(answer):
			default: // it does not read the answers to its queries
			}
		}
		return
	}
	for _, j := range sh.joined {
		j.put(p.bytes)
	}
}

func (j *joiner) put(b []byte) {
	switch {
	case j.behind:
	case len(j.queue)+len(b) > backlog:
		j.queue, j.behind = nil, true
	default:
		j.queue = appendFrame(j.queue, outputFrame, b)
	}
}

// appendOutput adds output in as many frames as it takes.
func appendOutput(b, output []byte) []byte {
	for len(output) > frameLimit {
		b, output = appendFrame(b, outputFrame, output[:frameLimit]), output[frameLimit:]
	}
	return appendFrame(b, outputFrame, output)
}

func (j *joiner) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// whole is the output that makes an empty terminal show the agent's. The caller has the lock.
func (sh *shared) whole(w window) []byte {
	if w.Rows == 0 || w.Cols == 0 {
		w = sh.size
	}
	return sh.seen.redo(w.Rows, w.Cols)
}

func (sh *shared) accept() {
	for {
		conn, err := sh.listener.Accept()
		if err != nil {
			select {
			case <-sh.ctx.Done():
				return
			case <-time.After(time.Second): // no descriptors are left, perhaps
			}
			continue
		}
		sh.done.Go(func() { sh.admit(conn) })
	}
}

// admit serves one client until it leaves.
func (sh *shared) admit(conn net.Conn) {
	defer conn.Close()
	// Whoever has not said hello when we end is not waited for either.
	stop := context.AfterFunc(sh.ctx, func() { _ = conn.SetDeadline(time.Now().Add(goodbyeTime)) })
	defer stop()
	if err := allowed(conn.(*net.UnixConn)); err != nil {
		_ = sendFrame(conn, refusedFrame, []byte(err.Error())) // the client may be gone
		return
	}
	h, err := heardHello(conn)
	if err != nil {
		_ = sendFrame(conn, refusedFrame, []byte(err.Error()))
		return
	}
	j := &joiner{
		conn: conn, window: h.Window, wake: make(chan struct{}, 1),
		is: Joined{Who: printable(h.Who, 64), PID: h.PID, ReadOnly: h.ReadOnly, Since: time.Now().Round(0)},
	}
	if why := sh.join(j); why != "" {
		_ = sendFrame(conn, refusedFrame, []byte(why))
		return
	}
	sent := make(chan struct{})
	sh.done.Go(func() {
		defer close(sent)
		sh.send(j)
	})
	sh.listen(j)
	sh.leave(j)
	<-sent
}

// allowed returns why a client of the socket is refused: only the agent's own user, and root, may join.
func allowed(conn *net.UnixConn) error {
	uid, err := peer.Unix(conn)
	if err != nil {
		return err
	}
	if !peer.OursOrRoots(uid) {
		return fmt.Errorf("user %d may not join this terminal", uid)
	}
	return nil
}

func heardHello(conn net.Conn) (h hello, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloTime)); err != nil {
		return h, err
	}
	kind, content, err := readFrame(conn)
	if err != nil || kind != helloFrame {
		return h, errors.Join(errFrame, err)
	}
	if err := json.Unmarshal(content, &h); err != nil {
		return h, errors.Join(errFrame, err)
	}
	if h.Version != 1 {
		return h, fmt.Errorf("version %d of the protocol is not known here: the agent was started by another version of outlive", h.Version)
	}
	return h, conn.SetReadDeadline(time.Time{})
}

// join adds a client and sends it the whole screen. It returns why that is not possible.
func (sh *shared) join(j *joiner) (refusal string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case sh.over:
		return "the agent has ended"
	case len(sh.joined) >= mostJoined:
		return fmt.Sprintf("%d clients have joined, the maximum", mostJoined)
	}
	sh.joined = append(sh.joined, j)
	sh.fit(true)
	j.queue = appendOutput(nil, sh.whole(j.window))
	j.poke()
	sh.tell()
	return ""
}

func (sh *shared) leave(j *joiner) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.joined = slices.DeleteFunc(sh.joined, func(other *joiner) bool { return other == j })
	if !sh.over {
		sh.fit(false)
		sh.tell()
	}
	_ = j.conn.Close()
	j.poke()
}

// tell records who has joined.
func (sh *shared) tell() {
	var list []Joined
	for _, j := range sh.joined {
		list = append(list, j.is)
	}
	sh.seen.setJoined(list)
}

// ownWindow takes the size of the wrapper's own terminal.
func (sh *shared) ownWindow(w window) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.own = w
	sh.fit(false)
}

// fit gives the agent's terminal the size of the smallest window of clients that can type, or of all if none can. With
// redraw the agent is made to redraw even if the size stays the same.
func (sh *shared) fit(redraw bool) {
	want := window{}
	take := func(w window) {
		if w.Rows <= 0 || w.Cols <= 0 {
			return
		}
		if want.Rows == 0 {
			want = window{Rows: w.Rows, Cols: w.Cols}
		}
		want.Rows, want.Cols = min(want.Rows, w.Rows), min(want.Cols, w.Cols)
	}
	take(sh.own)
	for _, readers := range []bool{false, true} {
		for _, j := range sh.joined {
			if j.is.ReadOnly == readers {
				take(j.window)
			}
		}
		if want.Rows > 0 {
			break
		}
	}
	switch {
	case want.Rows > 0 && want != sh.size:
		sh.stopNudge()
		sh.size = want
		sh.seen.resize(want.Rows, want.Cols)
		sh.resize(want.Rows, want.Cols)
	case redraw && sh.nudge == nil:
		sh.resize(max(sh.size.Rows-1, 1), max(sh.size.Cols-1, 1))
		sh.nudge = time.AfterFunc(redrawPause, func() {
			sh.mu.Lock()
			defer sh.mu.Unlock()
			if sh.nudge != nil {
				sh.nudge = nil
				sh.resize(sh.size.Rows, sh.size.Cols)
			}
		})
	}
}

func (sh *shared) stopNudge() {
	if sh.nudge != nil {
		sh.nudge.Stop()
		sh.nudge = nil
	}
}

// hand gives keys to the agent, and reports whether they were taken. With patient it waits for the agent: a long text that is pasted comes
// faster than a busy one reads.
func (sh *shared) hand(keys []byte, patient bool) bool {
	select {
	case sh.keys <- keys:
		return true
	default:
	}
	if !patient {
		return false
	}
	late := time.NewTimer(keysTime)
	defer late.Stop()
	select {
	case sh.keys <- keys:
		return true
	case <-late.C:
	case <-sh.ctx.Done():
	}
	return false
}

// listen takes a client's input until it leaves.
func (sh *shared) listen(j *joiner) {
	reads := true // the agent does; whoever waited for each key of one that does not would not see the client leave
	for {
		kind, content, err := readFrame(j.conn)
		if err != nil {
			return
		}
		switch kind {
		case inputFrame:
			if j.is.ReadOnly {
				continue
			}
			sh.seen.input(content, time.Now())
			reads = sh.hand(content, reads)
		case windowFrame:
			var w window
			if json.Unmarshal(content, &w) != nil {
				return
			}
			sh.mu.Lock()
			j.window = w
			sh.fit(w.Redraw)
			if w.Redraw {
				j.queue, j.behind = nil, true
				j.poke()
			}
			sh.mu.Unlock()
		}
	}
}

// send welcomes a client, and sends it its queue until it leaves, or the agent has ended. One that can no longer be
// written to is left to [shared.listen], which first reads what was typed before leaving.
func (sh *shared) send(j *joiner) {
	if err := sendFrame(j.conn, welcomeFrame, nil); err != nil { // by itself: the queue may be dropped
		return
	}
	for range j.wake {
		sh.mu.Lock()
		if j.behind {
			j.queue, j.behind = appendOutput(nil, sh.whole(j.window)), false
		}
		queue, exit := j.queue, j.exit
		j.queue = nil
		sh.mu.Unlock()
		if _, err := j.conn.Write(queue); err != nil {
			return // they have left, or do not read what is left after the agent's end
		}
		if exit != nil {
			_ = sendValue(j.conn, exitFrame, exit) // the client may be gone
			_ = j.conn.Close()
			return
		}
	}
}

// close tells all clients of the agent's end, and accepts no more.
func (sh *shared) close(exit Exit) {
	if sh == nil {
		return
	}
	sh.mu.Lock()
	sh.over = true
	sh.stopNudge()
	for _, j := range sh.joined {
		j.exit = &exit
		j.poke()
	}
	sh.mu.Unlock()
	sh.end()
	if sh.listener != nil {
		_ = sh.listener.Close() // it takes its socket away
	}
	sh.done.Wait()
}
