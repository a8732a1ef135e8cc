package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// The programs beside outlive, and the folders of their modules.
const (
	otelName  = "outlive-otel"
	fleetName = "outlive-fleet"
)

// target is a system and a processor, in Go's words.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// exe is the program's name there.
func (t target) exe() string {
	if t.os == "windows" {
		return "outlive.exe"
	}
	return "outlive"
}

// every is all targets that a release has.
var every = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func parseTargets(text string) ([]target, error) {
	if text == "" {
		return every, nil
	}
	var all []target
	for _, word := range strings.Split(text, ",") {
		i := slices.IndexFunc(every, func(t target) bool { return t.String() == word })
		if i < 0 {
			return nil, fmt.Errorf("-targets %s: want some of %v", word, every)
		}
		all = append(all, every[i])
	}
	return all, nil
}

// built is a program's file, and what the go command says of it.
type built struct {
	path string
	info *debug.BuildInfo
}

// program is outlive, built for one target, and beside it the programs of modules of their own.
type program struct {
	target
	built
	otel  built // exports by OpenTelemetry; goes with outlive
	fleet built // joins machines; has packages of its own
}

// named is a program's file there.
func (t target) named(name string) string { return name + strings.TrimPrefix(t.exe(), "outlive") }

// version is what the build information says of the commit.
type version struct {
	text     string // without v, and without what follows a plus
	commit   string
	date     time.Time // of the commit, UTC
	modified bool      // files were changed since
}

// snapshot reports a commit without a version's tag.
func (v version) snapshot() bool { return module.IsPseudoVersion("v" + v.text) }

// build makes the programs, and one for this machine if it is not among them, for what only the program itself can print.
func (d *dist) build(targets []target) error {
	host := target{runtime.GOOS, runtime.GOARCH}
	if !slices.Contains(targets, host) {
		return fmt.Errorf("the target %s is missing: completions and units are printed by outlive itself", host)
	}
	for _, t := range targets {
		begin := time.Now()
		p := program{target: t}
		for _, one := range []struct {
			name, dir, what string
			to              *built
		}{
			{"outlive", "", "./cmd/outlive", &p.built}, {otelName, otelName, ".", &p.otel}, {fleetName, fleetName, ".", &p.fleet},
		} {
			var err error
			path := filepath.Join(d.stage, t.os+"_"+t.arch, t.named(one.name))
			if *one.to, err = compile(filepath.Join(d.root, one.dir), one.what, path, t, d.jobs); err != nil {
				return err
			}
		}
		v, err := versionOf(p.info)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if d.programs != nil && v != d.version {
			return fmt.Errorf("%s is of %v, and others are of %v: the clone has changed meanwhile", t, v, d.version)
		}
		d.version = v
		d.programs = append(d.programs, p)
		fmt.Printf("build %-34s %5.1f s\n", t, time.Since(begin).Seconds())
	}
	for _, t := range every {
		if !slices.Contains(targets, t) {
			fmt.Printf("not made: %s\n", t)
		}
	}
	fmt.Printf("outlive %s, commit %s, %s\n", d.text, d.commit, d.date.Format(time.RFC3339))
	return nil
}

// compile builds a package of the module in dir. Nothing of this machine is in the result.
func compile(dir, what, path string, t target, jobs int) (built, error) {
	args := []string{"build", "-trimpath", "-buildvcs=true", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", path}
	if jobs > 0 {
		args = append(args, fmt.Sprintf("-p=%d", jobs))
	}
	cmd := exec.Command("go", append(args, what)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off",
		// The clone may belong to another user, as in a container; git then tells nothing of it.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if err := cmd.Run(); err != nil {
		return built{}, fmt.Errorf("go build for %s: %w", t, err)
	}
	info, err := buildinfo.ReadFile(path)
	return built{path, info}, err
}

func versionOf(info *debug.BuildInfo) (version, error) {
	var v version
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	main := info.Main.Version
	if !semver.IsValid(main) {
		return v, fmt.Errorf("the program has no version but %q: build it in a git clone", main)
	}
	v.text = strings.TrimPrefix(strings.TrimSuffix(main, semver.Build(main)), "v")
	v.commit, v.modified = settings["vcs.revision"], settings["vcs.modified"] == "true"
	date, err := time.Parse(time.RFC3339, settings["vcs.time"])
	v.date = date.UTC()
	return v, err
}

// host is the program for this machine.
func (d *dist) host() program {
	i := slices.IndexFunc(d.programs, func(p program) bool { return p.target == target{runtime.GOOS, runtime.GOARCH} })
	return d.programs[i]
}
