package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// standbyRow is, for one server, what a crash costs when a spare stands by. Times in ms.
type standbyRow struct {
	server  string
	count   int
	answer  float64 // one answer after a rest, started directly, median
	byHand  deaths  // one of two started directly is killed, the other is asked when it has ended
	outlive deaths  // the one that serves is killed, and outlive asked at once
}

// added is what the crash costs a client beside what nobody can change: that this server dies, and that the other answers.
func (s standbyRow) added() float64 { return s.outlive.after() - s.byHand.after() }

// deaths are the times of killed servers, each from its SIGKILL, in ms.
type deaths struct {
	dying []float64 // until the system says that this very process has ended
	gaps  []float64 // until another answers
}

func (d *deaths) add(dying, gap float64) {
	d.dying, d.gaps = append(d.dying, dying), append(d.gaps, gap)
}

// after is the median of what the answer took from the death on.
func (d deaths) after() float64 {
	var after []float64
	for i, gap := range d.gaps {
		after = append(after, gap-d.dying[i])
	}
	return figures.Median(after)
}

type standbyRows []standbyRow

func (rows standbyRows) outcome() (out outcome) {
	t := figures.Table{
		Title: "Crash with a spare, ms",
		Note: "`--standby 1`, and two servers that the benchmark holds by hand, take turns. One is killed and asked at once; by hand, the other is " +
			"asked when the first has ended. Dying: from SIGKILL until the system says that this very process has ended; nobody can know sooner. After it: from " +
			"then to the answer of the other. Added: the difference of these; it may be up to 0.2 ms too small, since behind outlive more threads wake at a " +
			"death and the benchmark may hear of it that much later. Gap: from SIGKILL to that answer. Answer: what tools/list takes after a " +
			"rest, by hand. Medians.",
		Rows: [][]string{{"server", "kills", "answer", "by hand: dying", "after it", "outlive: dying", "after it", "added", "gap", "gap p90"}},
	}
	for _, s := range rows {
		t.Add(s.server, s.count, s.answer, figures.Median(s.byHand.dying), s.byHand.after(), figures.Median(s.outlive.dying), s.outlive.after(), s.added(),
			figures.Median(s.outlive.gaps), figures.Percentile(s.outlive.gaps, 0.9))
		out.promises = append(out.promises, promise{name: "crash with a spare adds, " + s.server, got: s.added(), limit: 2, unit: " ms"})
	}
	out.tables = []figures.Table{t}
	return out
}

// standbys measures, for each server, the gap that a client sees when the server is killed and a spare stands by.
func (b *bench) standbys() (outcome, error) {
	var rows standbyRows
	for _, server := range b.measured() {
		row, err := b.standby(server)
		if err != nil {
			return outcome{}, fmt.Errorf("spare of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows.outcome(), nil
}

// standby measures one server: outlive with its spare and two servers held by hand take turns. The processes of both rest
// equally long, and both have seen as many others start meanwhile.
func (b *bench) standby(server namedServer) (standbyRow, error) {
	p, j, err := b.startTold(server.command, "--standby", "1")
	if err != nil {
		return standbyRow{}, err
	}
	defer p.stop()
	hand := byHand{bench: b, server: server.command}
	defer hand.stop()
	if err := hand.start(); err != nil {
		return standbyRow{}, err
	}
	row := standbyRow{server: server.name, count: b.plan.spares}
	for i := range b.plan.spares {
		b.say("spare of %s: %d of %d", server.name, i+1, b.plan.spares)
		if err := j.await("standby_ready", i+1); err != nil {
			return standbyRow{}, err
		}
		time.Sleep(spareRest)
		if err := p.killServing(j, &row.outlive); err != nil {
			return standbyRow{}, err
		}
		if err := j.await("standby_ready", i+2); err != nil {
			return standbyRow{}, err
		}
		if err := hand.measure(); err != nil {
			return standbyRow{}, err
		}
	}
	row.byHand, row.answer = hand.deaths, figures.Median(hand.answers)
	return row, nil
}

// spareRest lets the machine come to rest when a spare is ready: it is ready for long before it is needed.
const spareRest = 50 * time.Millisecond

// byHand is two servers that the benchmark holds itself: what one does without outlive. Times in ms, one of each kill.
type byHand struct {
	bench         *bench
	server        []string
	first, second *peer
	answers       []float64 // of the first, after a rest
	deaths        deaths    // of the first; the second is asked when the first, asked before, has ended
}

// start starts those that are missing.
func (h *byHand) start() (err error) {
	for _, p := range []**peer{&h.first, &h.second} {
		if *p == nil {
			if *p, err = h.bench.start(direct, h.server); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *byHand) stop() {
	for _, p := range []*peer{h.first, h.second} {
		if p != nil {
			p.stop()
		}
	}
}

// measure kills the first server, has the second answer, which is the first from then on, and starts another.
func (h *byHand) measure() (err error) {
	time.Sleep(spareRest)
	if h.answers, err = h.first.timedList(h.answers); err != nil {
		return err
	}
	time.Sleep(spareRest)
	pid := h.first.pid()
	died, err := deathOf(pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	// A client of outlive knows nothing of the kill and asks at once, which a dying process has to share the machine with.
	_ = h.first.send([]byte(listLine(h.first.nextID)))
	dying, err := died(begin)
	if err != nil {
		return err
	}
	if err := h.second.list(); err != nil {
		return err
	}
	h.deaths.add(dying, milliseconds(time.Since(begin)))
	h.first.stop()
	h.first, h.second = h.second, nil
	return h.start()
}

// killServing kills the process that serves, asks at once, and adds when it had ended and when the answer came.
func (p *peer) killServing(j *journal, to *deaths) error {
	if err := j.read(); err != nil {
		return err
	}
	pid := j.serving()
	died, err := deathOf(pid)
	if err != nil {
		return err
	}
	type ended struct {
		dying float64
		err   error
	}
	end := make(chan ended, 1)
	begin := time.Now()
	go func() {
		dying, err := died(begin)
		end <- ended{dying, err}
	}()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	err = p.list()
	gap := milliseconds(time.Since(begin))
	if err != nil {
		return err
	}
	e := <-end
	to.add(e.dying, gap)
	return e.err
}

// timedList lists the tools once and adds how many ms that took.
func (p *peer) timedList(to []float64) ([]float64, error) {
	begin := time.Now()
	err := p.list()
	return append(to, milliseconds(time.Since(begin))), err
}

// deathOf returns what waits for the end of a process, which lives when deathOf returns, and tells how many ms after begin
// the kernel says so.
func deathOf(pid int) (await func(begin time.Time) (float64, error), err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	return func(begin time.Time) (float64, error) {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			if err == nil {
				return milliseconds(time.Since(begin)), nil
			}
			if !errors.Is(err, unix.EINTR) {
				return 0, fmt.Errorf("watch process %d: %w", pid, err)
			}
		}
	}, nil
}
