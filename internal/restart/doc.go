// Package restart is the restart contract between a server, the one who keeps it alive, and the agent behind the
// client: what an exit code means (S0 3), the marker on stderr (S3), the marker file, and the three tools with their
// schemas and texts (S1).
//
// Nothing here reads a clock; only [WriteMarker] touches the disk. The package starts no goroutine. A
// [MarkerScanner] belongs to the goroutine that reads the server's stderr; everything else is a value.
package restart
