package agenttest

// Role is the environment variable that says which role a test binary is started in, as words; the first is the role itself.
const Role = "OUTLIVE_TEST_ACTOR"

// Starts is the environment variable that names a file, in which each agent leaves a line: its number and its preamble.
const Starts = "OUTLIVE_TEST_STARTS"
