package restart

// highestCode is the highest status that a process can exit with.
const highestCode = 1<<32 - 1
