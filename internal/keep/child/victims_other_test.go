//go:build unix && !linux

package child

// attack knows no modes: there is no keeper here that they could try.
func attack(string, []string) (code int, known bool) { return 0, false }
