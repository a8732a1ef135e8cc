//go:build !linux

package child

import "context"

// Strays lists nothing: only Linux has owner tags.
func Strays() ([]Stray, error) { return nil, nil }

// SweepStrays does nothing, see [Strays].
func SweepStrays(context.Context) (SweepReport, error) { return SweepReport{}, nil }

// Mechanisms lists what keeps processes from surviving outlive.
func Mechanisms() []Mechanism { return []Mechanism{mechanism} }
