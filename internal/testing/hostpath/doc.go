// Package hostpath makes paths of this system out of those that tests are written with, which begin with a slash: on Windows
// such a path is not absolute. On all other systems nothing is changed.
//
// Starts no goroutine.
package hostpath
