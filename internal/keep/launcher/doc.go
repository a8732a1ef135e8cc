// Package launcher finds the command behind a launcher: npx, uvx and their like look for a package, perhaps ask the
// registry, and only then start the real server, which costs up to a second and stays in memory as a wrapper. Once the
// server is ready its real command is known, and the next start can do without the launcher.
//
// [Is] tells a launcher by its command line. [Resolve] looks at the processes below the launcher's and returns the
// [Command] that holds both our pipes, with what it takes to start it again: argv, directory, changes of the
// environment, and stamps of the files that tell which version it is. [Command.Stale] tells when the launcher has to be
// asked again. Who uses it falls back to the launcher when the command fails before it is ready.
//
// Nothing is asked of the server, nothing is started and nothing written. The package starts no goroutine and keeps no
// state. Finding the command works on Linux, by /proc; elsewhere [Resolve] returns [ErrUnsupported].
package launcher
