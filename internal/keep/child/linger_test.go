package child

import "time"

// lifetime is how long a process of these tests lives if nobody ends it: longer than anybody waits for its end, so that it is never
// taken for ended by others.
const lifetime = 10 * time.Minute

// linger is all that is left to do for a process that waits to be ended.
func linger() { time.Sleep(lifetime) }
