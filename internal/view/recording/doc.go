// Package recording is the file that `outlive tap --record` writes, and what `outlive replay` does with it: it plays what a client has
// said, against a server, and compares the answers.
//
// A recording is JSON lines. The first says which version of the format it is and what was recorded, each other one is a message
// ([tap.Record]) with its body, or says how many are missing there. Secrets have been replaced before.
//
// [Script.Play] waits for the server with the goroutine that calls it. It starts one that reads what the server says, which ends with the
// server's output, and one for each message that is written, which ends when the server has read that, or with its input.
package recording
