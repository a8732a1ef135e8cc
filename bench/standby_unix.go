//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// standbys measures, for each server, the gap that a client sees when the server is killed and a spare stands by.
func (b *bench) standbys(servers []namedServer) ([]standbyRow, error) {
	var rows []standbyRow
	for _, server := range servers {
		row, err := b.standby(server)
		if err != nil {
			return nil, fmt.Errorf("spare of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
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
	row := standbyRow{Server: server.name, Count: b.plan.Spares}
	for i := range b.plan.Spares {
		b.progress("spare of %s: %d of %d", server.name, i+1, b.plan.Spares)
		if err := j.await("standby_ready", i+1); err != nil {
			return standbyRow{}, err
		}
		time.Sleep(spareRest)
		if err := p.killServing(j, &row.Outlive); err != nil {
			return standbyRow{}, err
		}
		if err := j.await("standby_ready", i+2); err != nil {
			return standbyRow{}, err
		}
		if err := hand.measure(); err != nil {
			return standbyRow{}, err
		}
	}
	row.ByHand, row.Answer = hand.deaths, figures.Median(hand.answers)
	err = b.announced(p, j, server.command, &row)
	return row, err
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
	pid := h.first.cmd.Process.Pid
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

// restartCall asks outlive's own tool for a restart.
func restartCall(id int) string {
	return fmt.Sprintf(callHead+`%d,"method":"tools/call","params":{"name":"restart_server","arguments":{"reason":"bench"}}}`+"\n", id)
}

// announced asks for restarts by the tool and lists the tools all the while. It fills in the 99th percentiles of what the
// answers took meanwhile, beside a start that is none of outlive's, and without either.
func (b *bench) announced(p *peer, j *journal, server []string, row *standbyRow) error {
	var with, beside, without []float64
	for i := range b.plan.Announced {
		b.progress("announced restart: %d of %d", i+1, b.plan.Announced)
		if err := j.read(); err != nil {
			return err
		}
		before, completed, ready := len(with), j.count("restart_completed"), j.count("standby_ready")
		if _, err := p.ask(restartCall); err != nil {
			return fmt.Errorf("restart_server: %w", err)
		}
		err := p.listUntil(j, &with, func() bool { return j.count("restart_completed") > completed })
		if err != nil {
			return err
		}
		if err := j.await("standby_ready", ready+1); err != nil {
			return err
		}
		time.Sleep(throttleTime)
		if err := b.listBeside(p, j, server, &beside); err != nil {
			return err
		}
		time.Sleep(spareRest)
		calls := len(without) + len(with) - before
		if err := p.listUntil(j, &without, func() bool { return len(without) >= calls }); err != nil {
			return err
		}
	}
	row.Announced, row.Beside, row.Ordinary = figures.Percentile(with, 0.99), figures.Percentile(beside, 0.99), figures.Percentile(without, 0.99)
	return nil
}

// listUntil lists the tools one time after the other until it is over, and adds how many ms each took.
func (p *peer) listUntil(j *journal, times *[]float64, over func() bool) (err error) {
	for !over() {
		if *times, err = p.timedList(*times); err != nil {
			return err
		}
		if err := j.read(); err != nil {
			return err
		}
	}
	return nil
}

// listBeside lists the tools until another process of the same server, started directly, has been through its handshake.
func (b *bench) listBeside(p *peer, j *journal, server []string, times *[]float64) error {
	type started struct {
		other *peer
		err   error
	}
	done := make(chan started, 1)
	go func() {
		other, err := b.start(direct, server)
		done <- started{other, err}
	}()
	err := p.listUntil(j, times, func() bool { return len(done) > 0 })
	got := <-done
	if got.err != nil {
		return got.err
	}
	got.other.stop()
	return err
}

// timedList lists the tools once and adds how many ms that took.
func (p *peer) timedList(to []float64) ([]float64, error) {
	begin := time.Now()
	err := p.list()
	return append(to, milliseconds(time.Since(begin))), err
}
