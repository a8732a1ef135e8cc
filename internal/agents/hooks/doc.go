// Package hooks is the program that agent CLIs call at their own events (Claude Code, Codex, Gemini CLI), and the
// entries in their settings that make them call it.
//
// A hook runs for some milliseconds. [Run] turns what the CLI says on stdin into an [Event] and leaves it as one file in
// the home; nobody needs to be there to take it. The monitor takes the files with [Drain].
//
// There is one hook that may wait: a PermissionRequest, when that was asked for and somebody has said with [Announce]
// that requests are answered here. The hook leaves a [Request], waits for [Answer], and tells the CLI. In every other case,
// and when nobody answers in time, it says nothing, and the CLI's own dialog decides. A question to the user is no
// permission: it is never asked nor answered here.
//
// Claude Code shows its dialog at once, beside the waiting hook, and the first decision counts; it does not tell the
// hook. So a hook at the end of the turn withdraws the session's requests, and who sees sooner that the agent goes on
// calls [Withdraw]. Codex shows its dialog when the hook has ended.
//
// A home has below hooks/ (0700, all files 0600):
//
//	events/          one file for each event, at most 1024; the oldest go when nobody takes them
//	requests/        ID.json, an open request, and ID.lock, which its hook holds as long as it lives
//	answers/         ID.json, how a request ended; the first to create the file decides
//	answering.lock   held by the one that answers
//	policy.json      the user's [Policy]; absent: nothing is asked or allowed
//	decisions.jsonl  who decided what and when; 4 MiB, and as much in decisions.jsonl.1
//
// Every file appears whole, by a rename or a link, so that a process killed at any moment leaves nothing half done: at
// worst a hidden file, which the next one removes. Other programs of the same user are trusted: they could answer for
// the user, as they could type for them.
//
// [Vendor.Install] and [Vendor.Remove] edit the text of a settings file by splices, never by decoding and encoding, and
// check each edit by undoing it.
//
// # Goroutines
//
// One of fsnotify's, in a hook that waits for an answer; it ends with the wait.
package hooks
