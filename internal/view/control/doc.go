// Package control lets other processes of the same user ask a running outlive how its server stands, and restart
// it: HTTP over a Unix socket, which Windows has too.
//
// Each running outlive has one socket, <name>.<pid>.sock, in the user's socket directory. The directory is 0700 and the
// socket 0600: only the user can connect. A client looks into directories that only the user may write to, and asks the
// system who listens at a socket before it says anything. The process id in the name keeps two copies of one command apart.
//
//	GET  /v1/status                         Status
//	POST /v1/restart  Order                 Result, once the new process is ready; 503 with {"error"} if it does not come up
//	POST /v1/reload                         503 with {"error"} if the configuration has mistakes, or there is none
//	POST /v1/upgrade?wait=DURATION          503 with {"error"} if it is not possible; otherwise the connection ends with the program
//	GET  /v1/events                         server-sent events: the lines of the audit log as they happen; Last-Event-ID resumes
//	GET  /v1/curves?after=MINUTE            how each server did, minute by minute (curve.Part): what has come after that minute of Unix time
//	GET  /v1/messages?server=NAME&bodies=1  the messages as they pass, a line of JSON each (tap.Record), until the client goes; nothing is kept
//
// server is one of a gateway's servers; without a gateway it is left out.
//
// [Listen] starts a goroutine that accepts connections and one that notes the curves, and net/http one for each connection;
// [Server.Close] ends them all. The client side, [Discover] and [Instance], starts none that outlives a call.
package control
