// Command outlive-fleet connects the outlives of several machines. "outlive fleet" starts it, see docs/FLEET.md; it is a program of its
// own, and a module of its own, so that nobody else pays for NATS.
//
// A hub embeds NATS (package natsengine) and knows the machines by their tokens. A member is what runs on each machine: it has
// "outlive watch --json --state" tell what happens there, and writes it to the hub: every 5 s a digest, at each change and once a minute
// the whole state, and the last events as they happen. What others ask of the machine it has outlive do, as it would be done over ssh;
// only what its verbs do for others is done. For those who look from here it listens on a Unix socket (package fleetsocket), and reads what
// others have written while somebody looks.
//
// Every member takes part in looking after the others (package judge): it judges while it has the lease. What it
// finds then it has this machine's monitor tell people, by a file (package fleetcases), and hears from "outlive watch" that it was told.
//
// Goroutines: the publisher's, two for judging, on NATS servers of one's own a short one that looks for older machines, two for the child that watches, one for each command that runs, those of NATS and net/http, and while
// somebody looks one that reads and one that notices who is silent; all of them end with the process's context.
package main
