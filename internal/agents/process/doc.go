// Package process knows one process for all time, and what belongs to it.
//
// A number is no identity: the kernel gives it to somebody else one day. An [Identity] is the number, the time of its
// start and the machine's boot, and every process is checked against it before it is inspected, signalled or ended.
//
// A process ends when it can be waited for. Its leader may end before, while other threads live: then it lives.
//
// [System.Stop] ends everything of a target, wherever it has gone, and says so only when nobody is left; vendors' daemons,
// which serve other sessions too, and we ourselves are spared. [System.Start] starts what shall outlive us, once for each
// token: a start that nobody could write down any more is found again (Linux).
//
// # Goroutines
//
// One small one for each started process reaps it and ends with it. [Exits] has one for each watched process, which ends
// with the process, or when that is watched no more.
package process
