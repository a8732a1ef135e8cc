// Package agentcli describes the agent CLIs: a table with all that is known of each, one row a [CLI], and the state
// of their sessions as their own files show it. Other packages use the row, and never ask which CLI it is.
//
//	files of a CLI ──tail──> records ──(one parser per vendor)──> turn ──> Session{Status, Turn}
//
// [Reader.Sessions] returns the present state of the sessions in some directories. The most important fact of a
// transcript is what it waits for ([Turn.Open]): an answer of the model, a tool, a human. None of these formats is
// documented as stable, so that every record is checked: missing, unknown or invalid members are not evidence, and do
// not affect the rest of the file.
//
// [Recognise] decides by a process's arguments whether it is such a CLI.
//
// # What it costs
//
// A look at files that have not changed is one stat for each. A transcript is read from where the last look stopped;
// at first only its end is read. Of lines of more than 4 MiB, such as those with pictures and documents, the middle of
// long texts is left out while they are read; so memory does not depend on their length. Old transcripts are not opened,
// unless a living process may be writing them. Symbolic links in the place of a file are not followed, so that the reader
// cannot be made to open other files.
//
// # What is not read
//
// Every limit is visible: more entries in a folder or more transcripts of living processes than are read are an error
// ([Reader.Fault]), and so are sessions of OpenCode 2, whose tables are not read. A line or a call that was not read is
// named in [Session.Unread]. What they would have shown is not known.
//
// # Goroutines
//
// [Reader.Watch] starts one, which turns file events into signals; [Reader.Close] ends it and waits for it. Everything
// else runs in its caller's goroutine. A Reader belongs to one goroutine at a time. It keeps only what it remembers of the
// files: after losing that, they are read again.
package agentcli
