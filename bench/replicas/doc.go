// Command replicas measures calls at three replicas of `outlive gateway` beside calls at one gateway, within the same seconds.
//
//	go run ./bench/replicas              builds outlive and bench/echo, and prints a table for docs/BENCHMARKS.md
//	go run ./bench/replicas -rounds 4    less
//	go run ./bench/replicas -tcp         beside each other, replicas of one machine and those whose core is reached as on another one
//
// Each side has 200 sessions of 2025-11-25 with one process of the server, bench/echo, which answers at once. The sides take turns in blocks
// of calls; each block is of one side, and the order changes with each round. Figures are of all calls of a side but its first
// block's. Each call is at the next replica, on a connection that is open already.
//
// Goroutines: main, and as many callers as calls run at a time, for the length of a block.
package main
