package figures

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1234", 273456: "273\u202f456", -3.5: "−3.50", -12345: "−12\u202f345",
	} {
		if got := Number(value); got != want {
			t.Errorf("Number(%v) = %q, want %q", value, got, want)
		}
	}
	if got := Number(math.NaN()); got != "–" {
		t.Errorf("Number(NaN) = %q", got)
	}
}
