// Command echo is the MCP server that the benchmark puts under measurement: a
// static Go program that speaks MCP over stdio and costs as little as one can.
//
// It answers initialize, ping, tools/list and tools/call of its only tool,
// echo, which returns its argument "message" as text, so that the size of a
// request sets the size of the answer. Notifications are ignored. With "both-eras"
// it also answers server/discover, as servers of 2026-07-28 do.
//
// It has one goroutine, main, which ends when stdin ends.
package main
