// Package registry reads and edits the registry of agents: registry.yaml, version 2. It says which agents there are,
// how they are started, what is expected of them, and whom to notify.
//
// The schema of the file (table.go, registry.go) says which keys there are, what their values look like, and where
// they are stored. Package schema reads the file by it, and generates its JSON Schema ([Schema]).
//
// People and programs write the file. [Parse] reports every mistake with its position, line and a caret; an unknown
// key is one, unless it begins with x-. [Edit] changes only the lines that it has to: it allows one writer at a time by a
// lock, replaces the whole file at once, keeps a copy of the last good text (registry.yaml.bak), and never overwrites
// a file that it cannot parse. Reading writes nothing.
//
// A PIV registry (version 1, `projects:`) is read as agents of kind piv, and is not edited here, because its writers
// drop keys that they do not know. Package piv reads PIV's files at run time.
//
// The package makes no decisions and starts no goroutine. ${NAME} is kept until [Expand] gets the values.
package registry
