// Package house has no code of the program: its tests check the house rules of docs/PATTERNS.md, and the documentation, on the
// whole tree.
//
// Each rule is a function from a parsed file to its findings. TestHouse runs them over the tree, and a table of small sources
// shows for each rule what it finds and what it leaves alone. The tests run in the root of the module, which they look for.
//
// Starts no goroutine.
package house
