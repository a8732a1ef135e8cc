// Package host runs a backend.Backend: it starts its processes, joins their pipes to a lineloop.Loop and brings the backend the
// news of both. Who stands before it is the [Client]'s business: for `outlive run` the descriptors of one client, for the
// gateway its sessions.
//
// A [Host] lives on its loop's goroutine, which owns it with everything in it; one loop can have many. Besides there are, for
// each server process, the goroutine that waits for its exit (package child) and one here that reads its stderr; both end
// with the process and reach the loop only through Post. Where a death is known before the stderr has ended, one more waits for that. Another looks, once for each server, behind a launcher. Other
// goroutines use [Host.Restart] and [Host.Status]. With Options.Remote there is no process but a connection (package remote), which
// starts, speaks and ends like one.
package host
