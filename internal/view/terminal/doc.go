// Package terminal is an overview in words: the lines that outlive top --plain prints, for pipes and screen readers, and what the
// screen of outlive top (package top) is made of: where it looks, and what does what a person asks for.
//
// It is pure, and starts no goroutine.
package terminal
