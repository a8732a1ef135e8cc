// Package restart is the restart contract between a server, the one who keeps it alive, and the agent behind the
// client: what an exit code means (WD-1), the marker on stderr (TP-1), the marker file, and the three tools with their
// schemas and texts (RT-1, RT-5).
//
// Nothing here reads a clock; only [WriteMarker] touches the disk. The package starts no goroutine. A
// [MarkerScanner] belongs to the goroutine that reads the server's stderr; everything else is a value.
package restart
