//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// slowEcho is how many ms the server of the lazy starts needs before it can answer anything.
const slowEcho = "1000"

// lazies measures how soon a client has its answers to the handshake and to the list of the tools from a server that has
// run before and is not started for them.
func (b *bench) lazies() (*lazyFigures, error) {
	server := []string{b.binaries.echo, slowEcho}
	p, _, err := b.startTold(server) // this run teaches
	if err != nil {
		return nil, err
	}
	p.stop()
	var answered, bare []float64
	for i := range b.plan.Starts {
		b.progress("lazy start: %d of %d", i+1, b.plan.Starts)
		begin := time.Now()
		if out, err := exec.Command(b.binaries.outlive, "--version").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("outlive --version: %w: %s", err, out)
		}
		bare = append(bare, milliseconds(time.Since(begin)))
		took, err := b.lazy(server)
		if err != nil {
			return nil, err
		}
		answered = append(answered, took)
	}
	return &lazyFigures{
		Count: b.plan.Starts, Answered: figures.Median(answered), P90: figures.Percentile(answered, 0.9), Bare: figures.Median(bare),
	}, nil
}

// lazy starts outlive once and returns how many ms after its exec the tools were listed.
func (b *bench) lazy(server []string) (float64, error) {
	begin := time.Now()
	p, err := startPeer("outlive --lazy", b.outliveCommand(server, "--lazy"), b.env, b.dir)
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
