// Package top is the screen of outlive top: panes of incidents, servers and agents, what there is to say of the selected one, and what it
// writes; keys restart, acknowledge, attach and filter. What it says of them is in the words of package terminal.
//
// It is one bubbletea program. [Run] starts it, and nothing of it is left when that returns, but for a question that is not answered
// yet: each runs in a goroutine of its own, so that a slow source or a slow restart never keeps the screen from going on. The
// program's own goroutine owns all state.
package top
