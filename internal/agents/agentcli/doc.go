// Package agentcli has the agent CLIs: one table with all that is known of each, a row a [CLI], and what they show of themselves
// in their own files, without their help. Other rooms read the row, and never ask which CLI it is.
//
//	files of a CLI ──tail──> records ──(one parser per vendor)──> turn ──> Session{Status, Turn}
//
// A [Reader] looks at them: [Reader.Sessions] gives the sessions in some directories as they are now. What matters of a
// transcript is what it waits for ([Turn.Open]): an answer of the model, a tool, a human. None of these formats is
// promised to anybody, so every record is taken by its shape: what is missing, unknown or broken is not evidence and
// never spoils what the rest of the file says.
//
// [Recognise] tells from an argument list whether a process is such a CLI.
//
// # What it costs
//
// A look at files that have not changed is a stat of each. A transcript is read from where the last look stopped; at
// first only its end is read, and never a line of more than 4 MiB. Old transcripts are not opened at all. Symbolic links
// in the place of a file are not followed, so that nobody can make the reader open something else.
//
// # Goroutines
//
// [Reader.Watch] starts one, which turns file events into at most a few signals a second; [Reader.Close] ends it and
// waits for it. Everything else runs in its caller's goroutine. A Reader belongs to one goroutine at a time, and keeps
// nothing but its memory of the files: losing it costs a second reading.
package agentcli
