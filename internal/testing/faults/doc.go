// Package faults is the fault matrix: what is left of a server's processes, and how soon it serves again, when the
// server, its client, outlive or its keeper goes in an unkind way. The same victims stand behind other supervisors too.
//
// A cell is one fault and one shape of server. It runs in a directory of its own, whose unique name every process of the
// cell has among its arguments; who is left is who still has it, whatever else it has shed. What a cell leaves behind is
// killed at its end. In [Isolate]'s pid namespace the kernel does so too.
//
// The programs under test are real ones. Any binary becomes the victim by calling [VictimIfAsked] first of all.
//
// The package starts no goroutine of its own, but for those of the clients and commands it starts (package mcptest,
// os/exec); they end with their cell. All of it needs /proc: on other systems only the names are here.
package faults
