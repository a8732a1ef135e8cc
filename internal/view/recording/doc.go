// Package recording is the file that `outlive tap --record` writes, and what `outlive replay` does with it: it plays what a client has
// said, against a server, and compares the answers.
//
// A recording is JSON lines. The first says which version of the format it is and what was recorded, each other one is a message
// ([tap.Record]) with its body, or says how many are missing there. Secrets have been replaced before.
//
// [Play] speaks to the server with the goroutine that calls it, and starts one that reads what the server says; it ends with the server's
// output.
package recording
