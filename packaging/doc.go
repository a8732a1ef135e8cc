// Command packaging makes everything that a release of outlive consists of, out of a git clone:
//
//	go run . -out ../dist                             every target
//	go run . -out ../dist -targets linux/amd64        some of them
//	go run . -out ../dist -release                    only if the commit has a version's tag and nothing was changed
//
// The same commit, with the same version of Go, makes the same bytes, wherever and by whomever: the only time in a file is the commit's. Version, commit
// and date come from the build information that the go command writes into the program. The tests of this package install
// and run what was made, without a network; they are skipped without OUTLIVE_DIST, the folder with it.
//
// It starts no goroutine.
package main
