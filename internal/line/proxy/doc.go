// Package proxy is `outlive run`: one client on two descriptors, one server behind them.
//
// A [Proxy] joins a lineloop.Loop, which moves the lines, with a host.Host, which keeps the server. The goroutine that calls
// [Proxy.Run] owns both; the goroutines beside it are the host's. [Proxy.HandOver] gives the client's session to another image of
// the program, executed in the same process, which goes on by [Resume]. Other goroutines use [Proxy.Restart], [Proxy.Status] and
// [Proxy.Interrupt]. In inherit mode there are no lines to move: [Inherited] has a goroutine and a channel.
package proxy
