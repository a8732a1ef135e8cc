// Package agentrun is the wrapper around an agent, `outlive agent run`: [Run] starts the agent's command on a terminal
// of its own or on pipes, forwards every byte unchanged in both directions, and writes what it sees to a file ([Report])
// that the monitor reads ([Read]). Signals are forwarded to the agent, its exit status is returned.
//
// # What it does not do
//
// It invents no sign of life: an unchanged file has no news. It ends no process: what the agent leaves behind lives on
// as it would without us, vendors' daemons among them, so it is not a subreaper either; all descendants have the
// environment's token, by which the monitor finds them. It decides nothing: the reader interprets titles and lines.
//
// If it is killed, the file stays as it was. It names the wrapper's process and the agent's, so that readers can check
// whether both live. On a terminal the kernel sends the agent SIGHUP; with pipes the agent gets SIGPIPE at its next
// output. Output to a closed pipe or terminal of ours ends the agent in the same two ways.
//
// # Terminal or pipes
//
// When our stdin and stdout are a terminal, the agent gets one of its own with the same size and settings, and ours
// becomes raw, so that each key reaches the agent unchanged. If the agent is killed, the modes that it left switched on
// are switched off. Otherwise, and on Windows, the agent has our stdin, and pipes for the rest; if our stdout and stderr
// are one file, the agent gets one pipe for both, which keeps their order. If only stdin is a terminal, the agent stays
// in our process group, where the keys' signals reach it.
//
// With [Options.Terminal] the agent has a terminal even where we have none. People join any such terminal ([Attach]) by
// a socket of the agent's user: the output goes to all of them, their keys go to the agent, and a new one is shown the
// screen, which we keep a copy of ([screen]). The agent's queries to its terminal are removed from the output and answered
// once, by our own terminal or else by us: several answers, or none, would be wrong ([scanner]). The report has the last
// lines of that copy; of an output to pipes its end is kept, and drawn for the report alone.
//
// With [Options.Keep] the output is also written to a rotated file ([logline.Kept]). The agent waits for a slow disk,
// but at most two seconds for a blocked one.
//
// # The kept screen
//
// The emulator ([screen]) keeps what a terminal shows: both screens with the style of each cell, cursor, pen and margins. The
// [scanner] feeds it with whole characters and whole sequences. All else is no business of an emulator: the pieces that go to
// several people, queries and their answers, modes to set and to undo ([modes]), titles, the picture for one who joins, the
// last lines, the text of a kept output ([Text]), and new text told from the same drawn again ([shown]).
//
// The emulator is our own, not the one of charmbracelet/x/vt. Version 0.1.0 of that (with x/ansi v0.11.9) hung for CSI
// 999999999 b, panicked for CSI 0;10r CSI 1T on five rows, and took the ✳ in Claude Code's title for the title's end. The
// scanner could keep these from it. What remains, by the source of 2026-08-16 and that of its cells (ultraviolet of 2026-10-08):
//   - each line that scrolls copies all cells of 112 bytes, half a megabyte of 40 rows and 120 columns; here rows change places;
//   - of a program's own screen the last 10,000 lines that scrolled away are kept, and nobody can say otherwise;
//   - pen and margins, which one who joins needs, cannot be read: they would be kept a second time, by a second reader of SGR;
//   - a wide character that no longer fits in a line is lost, and behind one that fills it the next overwrites it;
//   - what joins a character is cut off where a write ends, so that the picture depends on how the output was cut;
//   - a smaller window loses the rows at the bottom, where the cursor is.
//
// It could replace less than half of our emulator: the rest would stand around it.
//
// # Goroutines
//
// [Run]'s goroutine owns the agent and the terminal, and gets signals and the agent's end. It starts one for each output
// stream, one for a terminal's input, for a terminal one that forwards keys, one that accepts connections, and two for
// each joined person, one that waits for the agent, one that writes the file, the one of [logline.Kept], and, on Linux,
// that of [heartbeat.Listener]. All have ended when it returns. (On Windows, one that reads a pipe held open
// by a descendant ends with the process.) Their shared knowledge is in one struct with a lock, [seen].
package agentrun
