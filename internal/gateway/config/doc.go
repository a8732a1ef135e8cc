// Package config reads which servers a gateway has, from outlive.yaml or from an AI client's own configuration file.
//
// [Load] and [Parse] recognise the format by its content, and return the same [File] for every format. They work in
// three steps, each in files of its own:
//
//   - text to tree: package tree parses YAML, JSON with comments and TOML into one kind of tree that records positions
//     (recognise.go finds out which of them it is);
//   - tree against schema: a table of package schema says which keys there are and what their values look like (table.go,
//     clienttable.go, form.go). Comparing the two finds unknown keys, wrong types and bad values, and replaces ${…}
//     references (expand.go). The JSON Schema of outlive.yaml is generated from the same table ([Schema]), so that
//     editors and the program agree;
//   - tree to File: each value is now either valid, or known to be bad and left out (outlive.go, client.go).
//
// All mistakes are collected and returned together as [*fileerror.Problems], each with line, column, the line itself
// and a caret. An unknown key is a mistake in outlive.yaml and a warning in a client's file, which may have keys for
// the client's own purposes.
//
// [OfCommandLine] begins at the second step: it builds the tree that a file with the one server would have given.
//
// The values of ${…} references are never shown: messages quote only the file.
//
// The package reads no environment and no flags, and only the files that are named: what it needs comes in [Options].
// It starts no goroutine. A File is not synchronised; it belongs to the goroutine that loaded it.
package config
