// Package launcher finds the real command of a server that is started by a launcher. Launchers such as npx and uvx
// look for a package, perhaps ask the registry, and only then start the server. That takes up to a second, and the
// launcher stays in memory as a wrapper. Once the server is ready its real command is known, and the next start does
// not need the launcher.
//
// [Is] recognises a launcher by its command line. [Resolve] looks at the processes below the launcher's and returns
// the [Command] that holds both our pipes, with everything that is needed to start it again: argv, directory, changes
// of the environment, and stamps of the files that determine the version. [Command.Stale] reports when the launcher
// has to be used again. If the command fails before it is ready, the caller uses the launcher.
//
// Nothing is sent to the server, nothing is started and nothing written. The package starts no goroutine and has no
// state. Finding the command works on Linux, by /proc; elsewhere [Resolve] returns [ErrUnsupported].
package launcher
