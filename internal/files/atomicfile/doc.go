// Package atomicfile reads and writes files that other programs read and write as well, without locks: registries, settings,
// reports.
//
// A file is put in the place of another by a rename, so a reader sees the old text or the new one, never half of one,
// and a process killed at any moment leaves at worst a hidden file. [Write] and [WriteDurably] write what is ours. [Replace] and
// [Remove] change what belongs to somebody else: only when the file still holds what was read, with its mode and owner kept and
// links followed. [Backup] keeps a copy beside it first.
//
// The package knows nothing of what the files say, owns no state and starts no goroutine.
package atomicfile
