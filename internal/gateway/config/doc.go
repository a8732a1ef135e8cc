// Package config reads what servers a gateway has: outlive.yaml, or the file of an AI client as it is.
//
// [Load] and [Parse] recognise the format by its content, and turn every one into the same [File]. Three steps, each in
// files of its own:
//
//   - text to tree: room tree makes YAML, JSON with comments and TOML one kind of tree that knows its positions
//     (recognise.go says which it is);
//   - tree against table: a table of room schema says which keys there are and what their values look like (table.go,
//     clienttable.go, form.go). The walk over both finds unknown keys, wrong types and bad values, and puts in what ${…}
//     stands for (expand.go). The table of outlive.yaml is also what its JSON Schema is made from ([Schema]), so that editor
//     and program never disagree;
//   - tree to File: by now every value is known to be good, or known to be bad and left out (outlive.go, client.go).
//
// All mistakes are collected and returned together as [*fileerror.Problems], each with line, column, the line itself and a caret.
// An unknown key is a mistake in outlive.yaml; in the file of a client, which has its own reasons, it is a warning.
//
// [OfCommandLine] begins at the second step: the one server that a command line names is the tree that a file would have been.
//
// What ${…} stands for is never shown: messages quote the file only.
//
// The package reads no environment and no flags, and no files but those that are named: what it needs comes in
// [Options]. It starts no goroutine; a File belongs to its loader.
package config
