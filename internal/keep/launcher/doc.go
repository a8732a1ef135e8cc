// Package launcher finds the server that npx or uvx has started, so that a crash can restart it without them. Through the
// launcher a restart waits for the package's registry, fails without it, and may come back as another version. Measured
// with npm 11.19, uv 0.13.9 and a registry of our own:
//
//	a crash of            | through the launcher                  | without it
//	npx pkg, npx pkg@1    | npm cannot reach the registry: failed | same version
//	                      | newer version published: that one     | same version
//	npx pkg@latest        | the same two                          | same version
//	npx pkg@1.0.0         | not reached: starts after 74 s        | same version
//	uvx pkg, pkg@latest   | not reached: failed; newer: that one  | same version
//	uvx pkg==1.0.0        | not reached: failed                   | same version
//
// npm tries for 72 s before it gives up, uv for 5 to 11. npm stays beside its server with some 60 MB, uv
// with 20 to 70. A docker client is no launcher in
// this sense: the server's pipes end in a process that is not below it.
//
// [Resolve] recognises npm (npx, npm exec) by the title it gives itself and uv (uvx, uv tool run, uv run) by its
// executable; the options of their command lines are not looked at. The server is the one process below that holds both
// our pipes; [Command] is how to start it again. A caller for which that fails, or who wants new code, uses the launcher.
//
// Before that, [Installing] says whether such a command, or one like it, still installs the server ([Installs]); it must then
// not be killed, and [BrokenCache] recognises what is left if it was.
//
// Nothing is sent to the server, nothing is started and nothing written. The package starts no goroutine and has no
// state. It works on Linux, by /proc; elsewhere [Resolve] returns [ErrNone].
package launcher
