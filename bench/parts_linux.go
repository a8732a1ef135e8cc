package main

import (
	"flag"
	"fmt"
	"strings"
)

// part is what one command measures.
type part struct {
	name, about string
	title       string // of its section of docs/BENCHMARKS.md; "": it is printed only
	plot        string // the file beside the page that shows its panels; "": none
	plotTitle   string
	raw         bool // measured by one locked thread without garbage collection
	alone       bool // measured in a pid namespace of its own
	judged      bool // a broken promise is an error unless -check=false
	prepare     func(*bench)
	note        func(*bench) string                    // what stands before its tables
	flags       func(to *options, flags *flag.FlagSet) // those that it alone has
	pieces      []piece
}

// piece is a measurement that can be taken by itself.
type piece struct {
	name    string
	long    bool // a quick run leaves it out
	measure func(*bench) (outcome, error)
}

// parts are all parts.
func parts() []part {
	return []part{
		{name: "run", about: "what `outlive run` adds to calls and restarts, beside no relay and a plain byte relay; seven minutes",
			title: "`outlive run`", plot: "benchmarks.svg", plotTitle: "What outlive adds to a call, and how long a restart takes",
			raw: true, note: runNote, flags: runFlags, pieces: []piece{
				{name: "latency", measure: (*bench).latencies}, {name: "gaps", measure: (*bench).gaps}, {name: "reloads", measure: (*bench).reloads},
				{name: "spares", measure: (*bench).standbys}, {name: "saves", measure: (*bench).saves}, {name: "launchers", measure: (*bench).launched},
				{name: "lazy", measure: (*bench).lazies}, {name: "taps", measure: (*bench).taps}, {name: "memory", measure: (*bench).memory},
				{name: "restarts", long: true, measure: (*bench).restarts}}},
		{name: "faults", about: "who is left when something is killed, beside other supervisors; eight minutes",
			title: "Fault matrix", alone: true, judged: true, note: faultsNote, pieces: []piece{
				{name: "own", measure: (*bench).ownFaults}, {name: "degraded", measure: (*bench).degradedFaults}, {name: "peers", measure: (*bench).peerFaults}}},
		{name: "gateway", about: "`outlive gateway` beside other programs that put a stdio server behind HTTP; a quarter of an hour",
			title: "Gateways", plot: "gateway.svg", plotTitle: "Gateways side by side", prepare: findGateways, note: gatewayNote, flags: gatewayFlags, pieces: []piece{
				{name: "settings", measure: (*bench).settings}, {name: "load", measure: (*bench).loads}, {name: "kills", measure: (*bench).killings},
				{name: "checks", long: true, measure: (*bench).checks}, {name: "sessions", measure: (*bench).sessionCurves},
				{name: "backends", measure: (*bench).backendCurves}, {name: "lazy", measure: (*bench).lazyServers}}},
		{name: "sharing", about: "`outlive run --shared`: memory of real servers, and latency; two minutes", title: "Shared servers", note: peersNote,
			pieces: []piece{{name: "memory", long: true, measure: (*bench).sharedMemory}, {name: "latency", measure: (*bench).sharedLatency}}},
		{name: "transports", about: "the ways between stdio and HTTP beside other programs; three minutes", title: "Transports", note: peersNote,
			pieces: []piece{{name: "from-url", measure: (*bench).fromURL}, {name: "to-http", measure: (*bench).toHTTP}}},
		{name: "monitor", about: "`outlive monitor` with 2,000 agents; four minutes", title: "The monitor", pieces: []piece{{name: "agents", measure: (*bench).monitored}}},
	}
}

func partNamed(name string) (part, error) {
	var names []string
	for _, p := range parts() {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return part{}, fmt.Errorf("there is no part %q: want one of %s", name, strings.Join(names, ", "))
}

func (p part) pieceNames() (names []string) {
	for _, piece := range p.pieces {
		names = append(names, piece.name)
	}
	return names
}

// listing tells all parts with their measurements.
func listing() string {
	var out strings.Builder
	out.WriteString("go run ./bench PART [-quick] [-check] [-only NAME,…] [-outlive FILE] [-peers DIR] [-docs DIR]\n\n")
	for _, p := range parts() {
		fmt.Fprintf(&out, "%-11s %s\n%11s of %s\n", p.name, p.about, "", strings.Join(p.pieceNames(), ", "))
	}
	return out.String()
}
