// Package agentrun is the wrapper around an agent, `outlive agent run`: [Run] starts the agent's command on a terminal of
// its own or on pipes, passes every byte on as it came, both ways, and keeps a file about what it has seen ([Report]), which
// the monitor reads ([Read]). Signals go to the agent, its exit status comes back.
//
// # What it does not do
//
// It makes up no sign of life: a file that is not written has nothing new to say. It ends nobody: whoever the agent leaves
// behind lives on as it would without us, vendors' daemons among them, so it is not a subreaper either; everything started
// below wears the environment's token, by which the monitor finds it. And it decides nothing: what the title, the bell or a
// line mean for the agent is the reader's business.
//
// Killed itself, it leaves the file as it was, which names the wrapper's process as well as the agent's: whoever reads it
// looks whether both live. On a terminal the kernel tells the agent (SIGHUP); with pipes the agent has SIGPIPE at its next
// output. Output that nobody can take any more, such as that into a closed pipe, ends the agent in the same two ways.
//
// # Terminal or pipes
//
// When our stdin and stdout are a terminal the agent gets one of its own with the same size and settings, and ours becomes
// raw, so that each key reaches the agent as it is; what it left switched on when it was killed is switched off again.
// Otherwise, and on Windows, the agent has our stdin and pipes for the rest; stdout and stderr that are one file for us are
// one pipe for it, so their order stays. With a terminal as stdin only, it stays in our process group, where the keys'
// signals reach it.
//
// With [Options.Terminal] the agent has a terminal also where we have none. Whichever it has, people join it ([Attach]) by a socket
// of the agent's user: its output goes to all of them, their keys go to the agent, and whoever joins is shown the screen, which we
// draw along ([screen]). What the agent asks its terminal is taken out of what they get, and answered by our own terminal or,
// where there is none, by us: several answers, or none, would be wrong ([filter]).
//
// With [Options.Keep] the output goes to a rotated file as well ([logline.Kept]). The agent waits for a slow disk, but not for
// one that takes nothing for two seconds.
//
// # Goroutines
//
// [Run] is the one that owns the agent and the terminal: signals and the agent's end come to it. It starts one for each
// stream of output, one for the input of a terminal, for a terminal one that hands on keys, one that lets people in, and two or
// three for each who has joined, one that waits for the agent, one that writes the file, the
// one of [logline.Kept] where output is kept, and, on Linux, that of [heartbeat.Listener]; all have ended when it returns. (On Windows, one that reads what a descendant holds open
// ends with the process.) What all of them have seen is in one leaf with a lock, [seen].
package agentrun
