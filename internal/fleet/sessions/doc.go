// Package sessions keeps the records of a gateway's HTTP sessions in the registry of a fleet, so that they outlive the machine on
// which the gateway ran: a core on another machine goes on with them. [Store] is a streamhttp.Store.
//
// # Who may write
//
// Of several cores of one gateway one has the sessions at a time: the holder of a lease ([Lease], package lease). The others wait. A holder
// that cannot renew its lease gives up by its own clock, before anybody else may take it.
//
// A lease alone makes nothing safe: what a former holder has sent may arrive late. So each record has the epoch of the lease by which it
// was written, and each write names the revision that it replaces. A late write meets another revision, is not carried out, and who
// sent it finds a higher epoch there: [ErrElsewhere].
//
// # What is in the registry
//
//	lease.gateway.<gateway>           who has the sessions, package lease
//	session.<gateway>.<key>           one record
//
// <gateway> is a name that is made of a secret, and a record is encrypted with a key of that secret (AES-256-GCM, with the registry's key as
// additional data). So other machines of the fleet, and whoever runs the engine, can read no record, change none unnoticed, and
// move none to another session. They can delete it, and bring back an older one.
//
// # When the engine does not answer
//
// A write or a removal is tried again until it was carried out or the lease is lost, for 30 s: an engine that elects a leader takes some
// seconds. One that refuses writes for longer has no room; the session goes on, and the gateway says so. A read that fails is an error, by which
// the client is told to come back. Each attempt takes [answerLimit] at most.
//
// Starts no goroutine.
package sessions
