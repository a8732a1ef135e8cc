// Package terminal is an overview in words: the lines that outlive top --plain prints, for pipes and screen readers, and what the
// screen of outlive top (package top) says of incidents, servers and agents.
//
// It is pure, and starts no goroutine.
package terminal
