package main

import (
	"fmt"
	"os/exec"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// slowEcho is how many ms the server of the lazy starts needs before it can answer anything.
const slowEcho = "1000"

// lazyFigures are starts that memory answers. Times in ms.
type lazyFigures struct {
	count         int
	answered, p90 float64 // exec of outlive → the tools are listed
	bare          float64 // outlive --version, the whole process, median
}

func (l lazyFigures) outcome() outcome {
	t := figures.Table{
		Title: "Lazy start, ms",
		Note: "`--lazy`, second run of a command whose server needs a second to start: from exec of outlive to the answer of tools/list, handshake " +
			"included, without a server. Bare: `outlive --version` from exec to exit.",
		Rows: [][]string{{"", "answered", "p90", "bare", "starts"}},
	}
	t.Add("outlive", l.answered, l.p90, l.bare, l.count)
	return outcome{tables: []figures.Table{t}, promises: []promise{{name: "lazy start: tools listed", got: l.answered, limit: 20, unit: " ms"}}}
}

// lazies measures how soon a client has its answers to the handshake and to the list of the tools from a server that has
// run before and is not started for them.
func (b *bench) lazies() (outcome, error) {
	server := []string{b.echo, slowEcho}
	p, _, err := b.startTold(server) // this run teaches
	if err != nil {
		return outcome{}, err
	}
	p.stop()
	var answered, bare []float64
	for i := range b.plan.starts {
		b.say("lazy start: %d of %d", i+1, b.plan.starts)
		begin := time.Now()
		if out, err := exec.Command(b.outlive, "--version").CombinedOutput(); err != nil {
			return outcome{}, fmt.Errorf("outlive --version: %w: %s", err, out)
		}
		bare = append(bare, milliseconds(time.Since(begin)))
		took, err := b.lazy(server)
		if err != nil {
			return outcome{}, err
		}
		answered = append(answered, took)
	}
	return lazyFigures{count: b.plan.starts, answered: figures.Median(answered), p90: figures.Percentile(answered, 0.9), bare: figures.Median(bare)}.outcome(), nil
}

// lazy starts outlive once and returns how many ms after its exec the tools were listed.
func (b *bench) lazy(server []string) (float64, error) {
	begin := time.Now()
	p, err := b.startPeer("outlive --lazy", b.outliveCommand(server, "--lazy"))
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if err := p.handshake(); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(begin))
	j := &journal{peer: p}
	if err := j.read(); err != nil {
		return 0, err
	}
	if n := j.count("server_spawned"); n > 0 {
		return 0, fmt.Errorf("%s started its server for the handshake%s", p.name, p.lastWords())
	}
	return took, nil
}
