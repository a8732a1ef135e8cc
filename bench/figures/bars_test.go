package figures

import (
	"strings"
	"testing"
)

// A panel has a legend only where one is given, and one without groups is not drawn at all.
func TestPlotDrawsWhatIsGiven(t *testing.T) {
	panel := Panel{Title: "bare", Groups: []Group{{Label: "a & b", Bars: []Bar{{Colour: OtherColour, Value: 1, Text: "one"}}}}}
	bare := Plot("title", panel, Panel{Title: "empty", Legend: []Bar{{Text: "of nothing"}}})
	if strings.Contains(bare, "empty") || strings.Contains(bare, "of nothing") || strings.Contains(bare, `width="12"`) {
		t.Errorf("the plot shows what was not given:\n%s", bare)
	}
	panel.Legend = []Bar{{Colour: OutliveColour, Text: "<ours>"}}
	legend := Plot("title", panel)
	for _, want := range []string{"a &amp; b", "&lt;ours&gt;", `width="12" height="12" fill="` + OutliveColour + `"`} {
		if !strings.Contains(legend, want) {
			t.Errorf("the plot lacks %q:\n%s", want, legend)
		}
	}
}
