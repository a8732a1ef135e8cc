// Package hooks is the program that agent CLIs (Claude Code, Codex, Gemini CLI) call at their own events, and it
// edits their settings so that they call it.
//
// A hook runs for some milliseconds. [Run] converts what the CLI says on stdin into an [Event] and writes it to a
// file in the home, whether or not a monitor is running. The monitor reads the files with [Drain].
//
// Only one hook may wait: a PermissionRequest, if the user has enabled that and a process has declared with
// [Announce] that it answers requests. The hook writes a [Request], waits for [Answer], and tells the CLI. In every
// other case, and when there is no answer in time, it says nothing, and the CLI's own dialog decides. A question to
// the user is not a permission: it is never passed on or answered here.
//
// Claude Code shows its dialog at once, while the hook waits, and the first decision counts; it does not inform the
// hook. So a hook at the end of the turn withdraws the session's requests, and a program that notices earlier that
// the agent continues calls [Withdraw]. Codex shows its dialog when the hook has ended.
//
// The folder hooks/ in a home (0700, all files 0600) has:
//
//	events/          one file for each event, at most 1024; if nobody reads them the oldest are removed, which the
//	                 file "dropped" then says
//	requests/        ID.json, an open request, and ID.lock, which its hook holds as long as it lives
//	answers/         ID.json, how a request ended; the first to create the file decides
//	answering.lock   held by the one that answers
//	policy.json      the user's [Policy]; absent: nothing is asked or allowed
//	decisions.jsonl  who decided what and when; 4 MiB, and as much in decisions.jsonl.1
//
// Every file is created complete, by a rename or a link, so that a killed process leaves no partial file: at most a
// hidden file, which the next process removes. Other programs of the same user are trusted: they could answer for the
// user, just as they could type for the user.
//
// [Vendor.Install] and [Vendor.Remove] edit the text of a settings file with package tree, never by decoding and
// encoding; each edit is checked by undoing it.
//
// # Goroutines
//
// Starts none.
package hooks
