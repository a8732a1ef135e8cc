package launcher

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Version says whether the launcher would start the same version again.
type Version string

const (
	// Pinned is a version that does not change: an exact number, or one from a project's lock file.
	Pinned Version = "pinned"
	// Latest has no exact number. npx (npm 10 and later), bunx and pnpm dlx would use a newer version if there is
	// one, npx at every start, the others once a day; uvx and pipx run keep the installed one.
	Latest Version = "latest"
	// Moving has to be looked up at each start because the user asked for it (@latest, --refresh), or because its
	// content may change: a branch, a folder, a URL.
	Moving Version = "moving"
)

// order is the parsed command line of a launcher.
type order struct {
	kind    Kind
	version Version
	command string   // the word that names command or package; "" if an option does
	project string   // uv's --project or --directory
	specs   []string // the packages
	named   bool     // an option names the package, the command does not
	// opaque says that the launcher's effect cannot be seen on the resulting process.
	opaque bool
}

// values are the options of each launcher whose value is the next word. If one is missing here, its value is taken
// for the package's name, and the package for an argument of the server.
var values = map[Kind][]string{
	Npx:     npmValues,
	NpmExec: npmValues,
	PnpmDlx: {"--package", "--allow-build", "-C", "--dir", "--reporter", "--loglevel", "--registry", "--cpu", "--os", "--libc"},
	Bunx:    {"-p", "--package"},
	YarnDlx: {"-p", "--package"},
	PipxRun: {"--spec", "--python", "--fetch-python", "--backend", "--with", "--index-url", "-i", "--pip-args"},
	Uvx:     uvRunValues, UvToolRun: uvRunValues, UvRun: uvRunValues,
}

var (
	npmValues   = []string{"-p", "--package", "-w", "--workspace", "--registry", "--prefix", "--cache", "--userconfig", "--loglevel", "--script-shell", "--tag", "--before"}
	uvRunValues = append([]string{"--from", "--with", "-w", "--with-editable", "--with-requirements", "-p", "--python", "--index",
		"--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-P", "--upgrade-package",
		"--upgrade-group", "--reinstall-package", "--refresh-package", "--index-strategy", "--keyring-provider", "--resolution",
		"--prerelease", "--fork-strategy", "-C", "--config-setting", "--config-settings-package", "--exclude-newer",
		"--exclude-newer-package", "--link-mode", "--env-file", "-c", "--constraints", "-b", "--build-constraints", "--overrides",
		"--excludes", "--extra", "--no-extra", "--group", "--no-group", "--only-group", "--package", "-m", "--module",
		"--no-build-package", "--no-binary-package", "--no-build-isolation-package", "--no-sources-package", "--python-platform",
		"--torch-backend", "--allow-insecure-host"}, uvValues...)
	// packageOptions name a package.
	packageOptions = []string{"-p", "--package", "--from", "--spec", "--with", "-w"}
	// movingOptions require a look-up at every start.
	movingOptions = []string{"--refresh", "-U", "--upgrade", "--reinstall", "--no-cache", "-n", "-P", "--upgrade-package",
		"--upgrade-group", "--reinstall-package", "--refresh-package", "--with-editable", "--prefer-online", "--force", "--ignore-existing"}
	opaqueOptions = []string{"-c", "--call", "--shell-mode", "--env-file"}
)

// parseOrder parses the options in words up to the package's or command's name; what follows belongs to the server.
func parseOrder(kind Kind, words []string) order {
	o := order{kind: kind}
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		if words[i] == "--" {
			if i+1 < len(words) {
				o.command = words[i+1]
			}
			break
		}
		if !strings.HasPrefix(name, "-") || name == "-" {
			o.command = words[i]
			break
		}
		if !joined && slices.Contains(values[kind], name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		if o.option(name, value) {
			break
		}
	}
	if !o.named && o.command != "" && kind != UvRun {
		o.specs = append(o.specs, o.command)
	}
	if o.version != Moving {
		o.version = versionOf(kind, o.specs, o.command)
	}
	return o
}

// option handles one option of the launcher, with its value, if it has one. last is true if it names a module, which
// is the command.
func (o *order) option(name, value string) (last bool) {
	python := strings.HasPrefix(string(o.kind), "uv") || o.kind == PipxRun
	switch {
	case slices.Contains(opaqueOptions, name) && !(python && name == "-c"):
		o.opaque = true
	case slices.Contains(movingOptions, name) && !(name == "-n" && !python):
		o.version = Moving
	case name == "--project" || name == "--directory":
		o.project = value
	case python && (name == "-m" || name == "--module"):
		o.command = value
		return true
	case slices.Contains(packageOptions, name) && !(python && name == "-p") && !(o.kind == UvRun && name == "--package"):
		o.specs = append(o.specs, strings.Split(value, ",")...)
		o.named = o.named || name != "--with" && name != "-w"
	}
	return false
}

// versionOf is the least certain of the specs' versions. What uv run starts is the project's own, pinned by its lock
// file.
func versionOf(kind Kind, specs []string, command string) Version {
	python := kind == Uvx || kind == UvToolRun || kind == UvRun || kind == PipxRun
	v := Pinned
	if kind == UvRun && (command == "-" || strings.Contains(command, "://")) {
		return Moving
	}
	for _, spec := range specs {
		one := npmVersion(spec)
		if python {
			one = pythonVersion(spec)
		}
		if one == Moving || v == Pinned {
			v = one
		}
		if v == Moving {
			break
		}
	}
	return v
}

var (
	exact     = lazyregexp.New(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	semverish = lazyregexp.New(`^[v^~<>=\d*x]`)
	pyExact   = lazyregexp.New(`^[A-Za-z0-9._-]+(\[[^\]]*\])?\s*(===?|@)\s*v?[0-9][0-9A-Za-z.!+_-]*$`)
	pyRange   = lazyregexp.New(`^[A-Za-z0-9._-]+(\[[^\]]*\])?\s*([<>=!~][^@]*)?$`)
)

// npmVersion parses an npm spec: name, name@version, name@range, name@tag; everything else is a location.
func npmVersion(spec string) Version {
	name, version, _ := strings.Cut(strings.TrimPrefix(spec, "@"), "@")
	scoped := strings.HasPrefix(spec, "@")
	switch slashes := strings.Count(name, "/"); {
	case slashes > 1, slashes == 1 && !scoped, strings.ContainsAny(name, ":") || strings.HasPrefix(name, "."), filepath.IsAbs(spec):
		return Moving
	case version == "":
		return Latest
	case exact.MatchString(version):
		return Pinned
	case semverish.MatchString(version) && !strings.ContainsAny(version, ":/"):
		return Latest
	}
	return Moving
}

// pythonVersion parses a requirement: name, name==version, uv's name@version, name>=range; everything else is a
// location or a tag.
func pythonVersion(spec string) Version {
	switch {
	case strings.ContainsAny(spec, "/:\\") || strings.HasPrefix(spec, "."):
		return Moving
	case pyExact.MatchString(spec) && !strings.Contains(spec, "*"):
		return Pinned
	case pyRange.MatchString(spec):
		return Latest
	}
	return Moving
}
