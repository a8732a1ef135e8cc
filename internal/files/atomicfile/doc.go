// Package atomicfile reads and writes files that other programs read and write as well, without locks: registries,
// settings, reports.
//
// A file is replaced by a rename, so that a reader sees the old text or the new one, never a partial one, and a
// process that is killed leaves at most a hidden file. [Write] and [WriteDurably] write outlive's own files.
// [Replace] and [Remove] change other programs' files: only if the file still has the content that was read; mode and
// owner are kept, and links are followed. [Backup] makes a copy first.
//
// The package knows nothing of the files' content, has no state and starts no goroutine.
package atomicfile
