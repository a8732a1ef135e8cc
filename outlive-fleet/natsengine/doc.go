// Package natsengine is a fleet's [engine.Engine] on NATS: a [Hub] embeds nats-server with JetStream, and an [Engine] is a client of
// one, or of a NATS server that somebody runs already.
//
// The tables that are watched share one key-value bucket (outlive_said), leases and sessions have one each. Nothing expires in them but sessions: a key-value
// store's clock is no measure of who is alive. The bus is requests of core NATS, which need no leader; the subject of one ends with the name of the
// machine that asks, and the permissions of a hub's users ([Rights]) let each ask under its own name, and write of itself, only. Reads are the leader's; a
// watch may tell what is old, so nothing is decided by one; writes with a revision are exact.
//
// Servers of a cluster, which are somebody's own, keep each bucket three times; each has its own leader among them, without which it can be watched, and
// neither be read nor written until another one is elected.
//
// An Engine has two connections, so that a large answer does not hold the registry up. They connect again for ever, after 250 ms to
// 5 s, and notice a silent one after 3 s. What could not be sent while they are away is not kept: it is an error at once, or when the
// caller's time is over. Only a refused password ends them ([Options.Refused]).
//
// Goroutines: those of NATS; one for each Watch, which ends with its context; one for each request that is being answered.
package natsengine
