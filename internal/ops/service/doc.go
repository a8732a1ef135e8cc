// Package service has outlive itself watched: by the system that starts it again, and by somebody on another machine.
//
//   - [Systemd], [Launchd] and [Task] are the files that make a service of a command; [Place] says where they belong and what
//     switches them on.
//   - A [Notifier] tells systemd that the program is ready, alive, about to stop.
//   - A [Deadman] pings an address as healthchecks.io's clients do: if pings stop, the service notifies a human.
//
// Neither gives a sign of life by itself. Both pass on what the loop that does the work says ([Notifier.Alive],
// [Deadman.Alive]); a loop that hangs is told of by its silence.
//
// # Goroutines
//
// [Deadman.Start] starts one, which pings and which [Deadman.Close] ends. There is no other.
package service
