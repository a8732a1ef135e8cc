//go:build !linux

package child

import "context"

// Strays lists nothing: only on Linux do processes carry a mark by which they are known later.
func Strays() ([]Stray, error) { return nil, nil }

// SweepStrays does nothing, see [Strays].
func SweepStrays(context.Context) (SweepReport, error) { return SweepReport{}, nil }

// Mechanisms tells how processes that [Start] starts are kept from surviving outlive.
func Mechanisms() []Mechanism { return []Mechanism{mechanism} }
