package figures

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what a reader must know to judge the figures.
type Machine struct {
	System, Kernel, Processor, Go string
	Cores                         int
}

// ThisMachine describes the machine that measures.
func ThisMachine() Machine {
	return Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Cores: runtime.NumCPU(),
		Kernel: kernelRelease(), Processor: processorName(),
	}
}

// String writes it as one line, without what the system did not tell.
func (m Machine) String() string {
	parts := []string{m.System}
	if m.Kernel != "" {
		parts = append(parts, "kernel "+m.Kernel)
	}
	parts = append(parts, fmt.Sprintf("%d cores", m.Cores))
	if m.Processor != "" {
		parts = append(parts, m.Processor)
	}
	return strings.Join(append(parts, m.Go), ", ")
}

// kernelRelease is empty where the system has no /proc.
func kernelRelease() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	// What follows the version names the vendor's build, not what was measured.
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	return version
}

// processorName is empty where the system has no /proc.
func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
