// Package proxy is `outlive run`: one client on two descriptors, and one server.
//
// A [Proxy] joins a lineloop.Loop, which moves the lines, with a host.Host, which runs the server. The goroutine that
// calls [Proxy.Run] owns both; the other goroutines are the host's. [Proxy.HandOver] passes the client's session to
// another image of the program, executed in the same process, which continues with [Resume]. Other goroutines use
// [Proxy.Restart], [Proxy.Status] and [Proxy.Interrupt]. In inherit mode there are no lines to move: [Inherited] has
// the loop for the events of its program alone.
package proxy
