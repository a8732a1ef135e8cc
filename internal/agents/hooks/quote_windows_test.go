package hooks

import "testing"

// For PowerShell a path in quotes is no command.
func TestCommandForTheCLIsShell(t *testing.T) {
	for name, want := range map[string]string{
		"claude": `"C:\Program Files\outlive.exe" hook claude`,
		"gemini": `& "C:\Program Files\outlive.exe" hook gemini`,
	} {
		v := VendorNamed(name)
		if got := v.HookCommand(`C:\Program Files\outlive.exe`); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got, want := VendorNamed("gemini").HookCommand("outlive"), "outlive hook gemini"; got != want {
		t.Errorf("a plain word: %s, want %s", got, want)
	}
}
