// Package proxy is `outlive run`: one client on two descriptors, one server behind them.
//
// A [Proxy] joins a wire.Loop, which moves the lines, with a backend.Backend, which decides about them, and with
// package child, which starts and ends processes. The goroutine that calls [Proxy.Run] owns all three. Besides it there
// are, for each server process, the one that waits for its exit (package child) and one here that reads its stderr; both
// end with the process and reach the loop only through Post. [Proxy.HandOver] saves all of it for another image of the
// program, executed in the same process, which goes on by [Resume]. Other goroutines use [Proxy.Restart], [Proxy.Status] and
// [Proxy.Interrupt].
package proxy
