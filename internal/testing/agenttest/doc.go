// Package agenttest is for the tests of the rooms that watch agents: an agent as a process that lives on, as stubborn and
// with as many children as a test wants, and [ReadScenario], which reads scenarios: scripts of what is seen of agents.
//
// It is test support; no test package is imported. [Act] turns the test binary into the agent, [Start] starts one and takes
// it away with the test. These two are for Linux only: what is tested with real processes of others is.
//
// One goroutine for each started agent reaps it; it ends with the agent, which the test's end kills.
package agenttest
