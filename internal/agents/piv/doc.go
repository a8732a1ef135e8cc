// Package piv is what PIV agents and their supervisor leave in files: the central registry (registry.yaml), each
// project's manifest (.agents/manifest.yaml) and the improvement log. It reads the original's schemas as they are,
// changes single members of the registry and keeps everything else byte for byte (package tree).
//
// Nothing here decides anything, and there is no goroutine. The registry has many writers, most of which know nothing
// of locks: so a write replaces the whole file at once (package atomicfile) and only what was read just before, and a reader
// takes into account that it may meet half a file (one without projects, and every error of [ParseRegistry]).
package piv
