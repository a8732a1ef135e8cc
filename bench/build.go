package main

import "github.com/outlive-mcp/outlive/bench/program"

// binaries are the programs under measurement.
type binaries struct {
	echo, floor, outlive string
}

// buildAll builds the programs into dir as a user would; outlive is left out if
// a path to a built one is given.
func buildAll(dir, built string) (out binaries, err error) {
	if out.echo, err = program.Build(dir, "bench/echo"); err != nil {
		return out, err
	}
	if out.floor, err = program.Build(dir, "bench/floor"); err != nil {
		return out, err
	}
	out.outlive, err = program.Given(built, dir, "cmd/outlive")
	return out, err
}
