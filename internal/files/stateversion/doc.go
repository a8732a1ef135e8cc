// Package stateversion checks the version numbers in outlive's own files: what an older outlive has written is read and
// migrated, what a newer one has written is refused, because its meaning is not known. It starts no goroutine.
package stateversion
