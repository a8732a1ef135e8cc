// Package collect gathers what an overview is made of: it finds the running outlives, asks for their status, follows their
// events, and has the monitor's home looked at by whoever knows it.
//
// [New] starts one goroutine, which looks once a second while somebody watches and seldom otherwise, one that hears of new
// sockets from the system, so that also short runs are followed, one for each running outlive, which follows its events and, if it has ended without saying so, waits a moment for its return, and one
// for each other machine, which follows what outlive says there and tries again when that ends. A look asks those outlives whose
// events or last answers say that something moves, and the others seldom: an outlive that is asked needs the processor, too. The home is looked at seldom, and
// at once when Options.HomeNews says so, before the servers are asked. Each question of a look has a goroutine, too: what does
// not answer in time is said to be silent, and keeps nothing else from being seen. fsnotify has a goroutine of its own.
// [Collector.Close] ends them and waits. What they have seen is one value behind a lock; [Collector.State] is computed from it on
// the looking goroutine, and read from an atomic pointer.
package collect
