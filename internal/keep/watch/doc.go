// Package watch reports which files changed, so that a server can be restarted when its code does.
//
// [New] finds every file that the globs choose, then starts one goroutine, which owns everything: the known files, the
// ignore rules, the watches. It reads the files' content, waits for events, and calls onChange itself, so calls never
// overlap. fsnotify has a goroutine of its own that reads the kernel's events. [Watcher.Close] ends both and waits for
// them.
//
// An event says only in which directory to look. After a quiet moment one scan of these directories (size and time, and
// the content of what differs, for files up to 1 MiB) is compared with the state last reported. So it does not matter how
// an editor saves (in place, by renaming a new file over the old one, by moving the old one aside), and a file that was
// only touched, or has its old content again, did not change. While git holds its index.lock, nothing is reported.
//
// Directories whose changes the kernel does not report (network and FUSE file systems, no inotify watches left, many
// files on macOS), and those with links to files, which may change elsewhere, are scanned every 2 s, or so rarely that
// scans take at most a twentieth of the time. overlayfs reports what happens through the mount, so it needs no polling.
//
// Which files: globs (of doublestar, relative to the root or absolute), exclusions ("!tests/**"), .gitignore files and
// .git/info/exclude, and a fixed list of noise (.git, node_modules, swap files; gitignore.go). A glob's literal part
// overrides the ignore rules: "dist/**/*.js" is watched although git ignores dist. Symbolic links to files are followed
// when a file is read, links to directories only where a glob begins.
//
// Patterns of ignore files are doublestar's, translated so that they mean what they mean to git, except for patterns that
// hardly anybody writes: named classes ([[:alpha:]]), ranges around the slash ([--0]), two or more stars beside something
// else than a slash (a**/b), and "**" twice in a row.
//
// [Auto] finds the globs for a server's own code from its command line.
package watch
