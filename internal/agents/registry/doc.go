// Package registry is the registry of agents: registry.yaml, version 2. It says who they are, how they are started, what is
// expected of them, and whom to tell.
//
// The table of the file (table.go, registry.go) says which keys there are, what their values look like, and where they go. Room
// schema reads the file by it, and makes its JSON Schema ([Schema]).
//
// People write the file, and so do programs. So [Parse] tells every mistake with its place, line and a caret, an unknown key
// is a warning and is kept, and [Edit] changes only the lines that it has to: one writer at a time under a lock, the whole
// file replaced at once, a copy of the last good text beside it (registry.yaml.bak), and a file that cannot be understood
// is never overwritten. Reading writes nothing.
//
// A PIV registry (version 1, `projects:`) is read as agents of kind piv, and is not edited here: its writers drop what
// they do not know. Room piv reads what PIV keeps in it at run time.
//
// Nothing here decides anything, there is no goroutine, and ${NAME} stays as it is until [Expand] gets the values.
package registry
