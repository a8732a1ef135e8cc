// Package mockmodel is what stands behind an agent CLI in the end-to-end tests: loopback HTTP servers that speak the
// Anthropic Messages API, the OpenAI Responses API and Chat Completions, and the Gemini API, and do what a script says.
// With them the real `claude`, `codex`, `opencode` and `gemini` run into every state a monitor must recognise, again and
// again, without an account and without leaving the machine.
//
// A Server answers by its Mode and by what the request shows (has a tool already answered?), never by the clock or by
// chance, so that two runs of one mode are the same conversation. Hang and Stall wait until the client leaves or the
// server is closed; Told waits for the test, which calls tools of MCP servers (Server.Call) and reads what the client
// sent back.
//
// Goroutines: those of one httptest.Server per Server, ended by Close, which Anthropic, OpenAI and Gemini register
// as the test's cleanup.
package mockmodel
