// Command screencast records outlive at work and writes it as a moving picture, docs/demo.svg:
//
//	go run ./screencast -outlive ../bin/outlive -out ../docs/demo.svg
//
// It types a few commands into a real shell on a real terminal (a pty), writes down what the terminal shows and when, and makes an
// SVG of it that needs no script and no font of its own. Each recording differs in its numbers, so it is made by hand, when what
// the demo shows has changed; TestScreencast looks at the one that is there.
//
// One goroutine reads the terminal until the shell has ended.
package main
