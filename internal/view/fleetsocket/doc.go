// Package fleetsocket is the Unix socket at which this machine's member of a fleet, a process of the program outlive-fleet, tells what
// it knows of the other machines and has outlive there do something. It has the messages of both sides, and the side of who asks: the
// program outlive links nothing of the fleet but this.
//
//	GET /v1/status              a [Status]
//	GET /v1/follow?host=NAME    the lines of "outlive watch --json --state" there, and at the end an [Ending]
//	POST /v1/run                a [Command]; JSON lines come back, each a [Frame]
//	POST /v1/share              a list of [Trouble]; [ShareAnswer] comes back
//	POST /v1/entry              an [Entry]; [EntryAnswer] comes back
//	POST /v1/leave              deletes what the fleet has of this machine and ends the member
//
// Access is limited by the socket, which belongs to the user alone. Starts no goroutine.
package fleetsocket
