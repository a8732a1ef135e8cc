// Package hosts asks outlive on other machines, over the user's own ssh: which hosts are meant, the command line that a remote
// shell gets, one answer or a stream of lines from each, and what it means when there is none.
//
// There is no daemon and no port: ssh runs `outlive … --json` there, with the user's configuration, keys, jump hosts and
// multiplexing. It never asks anything on the terminal, but for [Set.Terminal]. Arguments are quoted for the remote shell, and
// host names that ssh could take for something else are refused.
//
// A [Carrier] takes the place of ssh where a fleet's member can reach the hosts.
//
// [Set.Ask] starts one goroutine for each host, at most 64 of them at work; it returns when all have answered or
// their time is over. [Set.Follow] starts one that ends a stream which says nothing any more; it ends with the call. Both end
// what they have started.
package hosts
