// Command monitor measures what outlive monitor costs: it declares agents, each a real process that beats, lets a built outlive
// watch them, and says how much of a core that takes over a minute, how much memory is its own, and how long after the end of
// an agent its start command runs.
//
//	go build -o outlive ./cmd/outlive && go run ./bench/monitor -outlive ./outlive -agents 2000
//
// The processor's time is the kernel's count for the monitor's process, so that what else the machine does counts little; the time
// until an agent is started again is time on the clock, and does not. Linux only. It is one goroutine, and ends every process
// that it has started.
package main
