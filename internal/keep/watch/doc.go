// Package watch tells which files changed, so that a server can be restarted when its code does.
//
// [New] looks at every file that the globs choose, then starts one goroutine, which owns everything: the known files, the
// ignore rules, the watches. It calls onChange itself, so calls never overlap. fsnotify has a goroutine of its own that
// reads the kernel's events. [Watcher.Close] ends both and returns when they have ended.
//
// An event says only where to look. What changed is decided when it has been quiet for a moment: each place an event
// named is compared with what was known of it (size and hash, for files over 1 MiB size and time). So it does not matter
// how an editor saves (in place, by renaming a new file over the old one, by moving the old one aside), and a file that was
// only touched, or is back with the same content, did not change. While git holds its index.lock, nothing is told.
//
// Which files: globs (of doublestar, relative to the root or absolute), exclusions ("!tests/**"), .gitignore files and
// .git/info/exclude with git's meaning, and a fixed list of noise (.git, node_modules, swap files; noise.go). What a glob
// spells out literally is taken at its word: "dist/**/*.js" is watched although git ignores dist. Symbolic links to files
// are followed when a file is looked at, links to directories only where a glob begins.
//
// A directory whose changes the kernel does not report (network and FUSE file systems, no inotify watches left) is looked
// at every so often instead, so rarely that looking takes at most a twentieth of the time. overlayfs reports what happens
// through the mount, so it needs no polling.
//
// [Auto] finds from a command line which globs a server's own code is.
package watch
