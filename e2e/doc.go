// Package e2e holds black-box tests of outlive with the official MCP SDKs on both sides.
//
// Real clients (Go SDK, TypeScript SDK 1.x and 2.x, Python SDK, the Inspector's command line) talk through
// `outlive run` to real servers (the same SDKs, server-everything, and a few servers that take a probe badly), while
// the tests kill the servers. Servers that are odd in one way each (servers/odd_server) are tried with and without outlive.
// The real Claude Code, Codex, Gemini CLI and OpenCode, in a terminal and headless, have mock models (mockmodel) that tell them what to
// call; the first two also run each other. Copilot CLI and Qwen Code have them too, and are only headless.
// Everything is started as a user would start it; nothing of outlive is imported. In the full run a program of the release before (olderCommit) is
// upgraded to this one.
//
// OUTLIVE_TIER says which run it is. At the door, which is the default, tests of the monitor and of a fleet with one hub wait by a build
// with shorter times (overlay/quick.go, quick_test.go), and nothing judges how long something takes; in the full run the shipped program
// is tested, with its own times.
//
// e2e/run.sh installs what is needed and runs the tests. With E2E_DIRECT=1 the same sessions run without outlive and
// without kills: proof that clients and servers themselves do what the tests expect of them.
package e2e
