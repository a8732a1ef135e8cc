// Package watch reports which files changed, so that a server can be restarted when its code does.
//
// [New] reads every file that the globs choose, then starts one goroutine, which owns everything: the known files, the
// ignore rules, the watches. It calls onChange itself, so calls never overlap. fsnotify has a goroutine of its own that
// reads the kernel's events. [Watcher.Close] ends both and waits for them.
//
// An event says only where to look. After a quiet moment each place named by an event is compared with its known state
// (size and hash, for files over 1 MiB size and time). So it does not matter how an editor saves (in place, by renaming
// a new file over the old one, by moving the old one aside), and a file that was only touched, or has its old content
// again, did not change. While git holds its index.lock, nothing is reported.
//
// Which files: globs (of doublestar, relative to the root or absolute), exclusions ("!tests/**"), .gitignore files and
// .git/info/exclude with git's meaning, and a fixed list of noise (.git, node_modules, swap files; noise.go). A glob's
// literal part overrides the ignore rules: "dist/**/*.js" is watched although git ignores dist. Symbolic links to files
// are followed when a file is read, links to directories only where a glob begins.
//
// A directory whose changes the kernel does not report (network and FUSE file systems, no inotify watches left) is
// polled, so rarely that polling takes at most a twentieth of the time. overlayfs reports what happens through the
// mount, so it needs no polling.
//
// [Auto] finds the globs for a server's own code from its command line.
package watch
