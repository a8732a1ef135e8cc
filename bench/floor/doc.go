// Command floor is the lower end of the benchmark's scale: a plain byte relay in
// Go that does as little as one can. It starts a command and copies bytes
// between its own stdin and stdout and the command's. It knows nothing of
// lines, messages or failures, and it is not meant for anything but comparison.
//
// Its technique won by measurement over a blocking thread per direction, epoll,
// splice, the netpoller, and the same loop with scheduler-aware system calls:
// one locked thread that polls both sources and copies what is there, with
// system calls that bypass the Go scheduler. A program that must be silent
// when idle cannot wait so for ever; see package rawio.
//
// There is one goroutine, main, which ends when the command's stdout ends.
package main
