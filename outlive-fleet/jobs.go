package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	jobsAtOnce = 64
	chunk      = 256 << 10 // bytes of one answer, before they are encoded
	pending    = 1 << 20   // bytes that wait for who has asked; then the command waits
	// holdFor is how long an answer waits for something to tell: shorter than who asks does.
	holdFor = 2 * time.Second
	// abandoned is how long nobody asks on until a command is ended: who has asked has gone, or is cut off.
	abandoned = 15 * time.Second
)

// order is what a machine asks of another one: to run something, to tell what has come of it, or to end it. All may be sent again. What is to
// run begins when its asker first wants to hear of it: who has given up, since no answer came, never does.
type order struct {
	Op   string   `json:"op"` // run, next, end
	ID   string   `json:"id"` // of the command; its sender has made it by chance
	Args []string `json:"args,omitempty"`
	Part int      `json:"part,omitempty"` // of next: which part is wanted, from 1
}

// part is an answer: a piece of what a command writes.
type part struct {
	Failed string `json:"failed,omitempty"` // why it could not be done
	Out    []byte `json:"out,omitempty"`
	Err    []byte `json:"err,omitempty"`
	None   bool   `json:"none,omitempty"` // there is nothing new yet
	Exit   *int   `json:"exit,omitempty"` // the last part
}

// jobs are the commands that run here for other machines.
type jobs struct {
	m *member

	mu  sync.Mutex
	all map[string]*job
}

func newJobs(m *member) *jobs { return &jobs{m: m, all: map[string]*job{}} }

// answer is an engine.Handler.
func (j *jobs) answer(ctx context.Context, asker string, request []byte) []byte {
	if len(request) == 0 {
		return nil // this machine lives, see judge.Address
	}
	var o order
	var p part
	if err := json.Unmarshal(request, &o); err != nil || o.ID == "" {
		p.Failed = "the request is not understood: another version of outlive may be there"
	} else {
		p = j.do(ctx, asker, o)
	}
	text, _ := json.Marshal(p) // texts, bytes and numbers: no error
	return text
}

func (j *jobs) do(ctx context.Context, asker string, o order) part {
	j.mu.Lock()
	one := j.all[o.ID]
	j.mu.Unlock()
	switch o.Op {
	case "run":
		return j.take(asker, o)
	case "next":
		if one == nil {
			return part{Failed: "it is not known any more: the member there was started anew, or it was asked for too long ago"}
		}
		if p := j.begin(o.ID, one); p.Failed != "" {
			return p
		}
		return one.next(ctx, o.Part)
	case "end":
		j.mu.Lock()
		defer j.mu.Unlock()
		j.drop(o.ID)
		return part{}
	}
	return part{Failed: fmt.Sprintf("%q is not known here: outlive is another version", o.Op)}
}

// drop ends a command. The lock is held.
func (j *jobs) drop(id string) {
	if one := j.all[id]; one != nil {
		one.cancel()
		delete(j.all, id)
	}
}

// take notes what is to be done, once.
func (j *jobs) take(asker string, o order) part {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[o.ID] != nil {
		return part{} // it was asked for twice
	}
	if len(j.all) >= jobsAtOnce {
		return part{Failed: fmt.Sprintf("%d commands for other machines run already", jobsAtOnce)}
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &job{cancel: cancel, asked: time.Now(), changed: make(chan struct{})}
	one.cmd = exec.CommandContext(ctx, j.m.program, append([]string{"for-others", fmt.Sprintf("--permissions=%t", j.m.Permissions), "--"}, o.Args...)...)
	one.cmd.WaitDelay = abandoned // so long who asks may take for the last that it has written
	one.cmd.Env = append(os.Environ(), askedByEnv+"="+asker)
	one.cmd.Stdout, one.cmd.Stderr = jobWriter{ctx, one, &one.out}, jobWriter{ctx, one, &one.err}
	if len(o.Args) > 0 && o.Args[0] != "status" && o.Args[0] != "logs" {
		j.m.log.Info("asked for by another machine", "from", asker, "what", o.Args)
	}
	j.all[o.ID] = one
	return part{}
}

// begin has outlive do what was taken, if it does that for others. A disk that hangs may keep it from starting: other commands go on.
func (j *jobs) begin(id string, one *job) part {
	j.mu.Lock()
	begun, over := one.begun, j.all[id] != one || one.forgotten()
	one.begun = begun || !over
	j.mu.Unlock()
	if begun {
		return part{}
	}
	if over {
		return part{Failed: "it was asked for too long ago, and is not done"}
	}
	one.add(&one.out, []byte("outlive "+j.m.release+"\n"))
	if err := one.cmd.Start(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.drop(id)
		return part{Failed: err.Error()}
	}
	go func() {
		err := one.cmd.Wait()
		code := one.cmd.ProcessState.ExitCode()
		if err != nil && code <= 0 {
			code = 1
		}
		one.end(code)
	}()
	return part{}
}

// sweep ends what nobody asks for any more, and everything with ctx.
func (j *jobs) sweep(ctx context.Context) {
	tick := time.NewTicker(abandoned / 3)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		j.mu.Lock()
		for id, one := range j.all {
			if over || one.forgotten() {
				j.drop(id)
			}
		}
		j.mu.Unlock()
	}
}

// job is one command.
type job struct {
	cancel context.CancelFunc
	cmd    *exec.Cmd
	begun  bool // changes with the lock of jobs

	mu       sync.Mutex
	out, err []byte // not yet told
	exit     *int
	last     part // that was told last, for who did not get it
	number   int  // of that
	asked    time.Time
	changed  chan struct{}
}

func (o *job) forgotten() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.asked) > abandoned
}

func (o *job) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *job) add(to *[]byte, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*to = append(*to, text...)
	o.tell()
}

func (o *job) end(code int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exit = &code
	o.tell()
}

// next is the part with that number: the last one once more, or what has come since.
func (o *job) next(ctx context.Context, number int) part {
	late := time.After(holdFor)
	for {
		o.mu.Lock()
		o.asked = time.Now()
		switch {
		case number == o.number:
			p := o.last
			o.mu.Unlock()
			return p
		case number != o.number+1:
			o.mu.Unlock()
			return part{Failed: "a part of what it has written was lost"}
		case len(o.out)+len(o.err) > 0 || o.exit != nil:
			o.number, o.last = number, part{Out: cut(&o.out), Err: cut(&o.err)}
			if len(o.out)+len(o.err) == 0 {
				o.last.Exit = o.exit
			}
			p := o.last
			o.tell() // there is room again
			o.mu.Unlock()
			return p
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			return part{None: true}
		case <-ctx.Done():
			return part{None: true}
		}
	}
}

func cut(from *[]byte) []byte {
	n := min(len(*from), chunk)
	piece := (*from)[:n:n]
	*from = (*from)[n:]
	return piece
}

// jobWriter takes what a command writes, and has it wait where nobody takes it.
type jobWriter struct {
	ctx context.Context
	job *job
	to  *[]byte
}

// Write implements io.Writer.
func (w jobWriter) Write(p []byte) (int, error) {
	for {
		w.job.mu.Lock()
		room := len(w.job.out)+len(w.job.err) < pending
		changed := w.job.changed
		w.job.mu.Unlock()
		if room {
			w.job.add(w.to, p)
			return len(p), nil
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return 0, io.ErrClosedPipe
		}
	}
}

// askedByEnv tells outlive which machine has asked: that one is recorded, and no further machine is looked at from here.
const askedByEnv = "OUTLIVE_ASKED_BY"
