package monitor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// recordLimit is the size at which the evidence record is rotated, in bytes.
const recordLimit = 16 << 20

// record appends the evidence of an agent to the record when its diagnosis has changed. What could not be written is
// tried again at each look, as long as the diagnosis stays: otherwise a disk that was full for a moment would hide the change.
func (m *Monitor) record(c *examined, now time.Time) {
	diagnosis := fmt.Sprint(c.diagnosis.Rule, c.diagnosis.Class)
	if m.opts.Record == "" || m.judged[c.Key] == diagnosis {
		return
	}
	if err := m.appendRecord(c, now); err != nil {
		if m.unrecorded != err.Error() { // at each look it would be the same
			m.opts.Logger.Warn("the evidence is not recorded", slog.Any("error", err))
		}
		m.unrecorded = err.Error()
		return
	}
	m.judged[c.Key], m.unrecorded = diagnosis, ""
}

func (m *Monitor) appendRecord(c *examined, now time.Time) error {
	if st, err := os.Stat(m.opts.Record); err == nil && st.Size() > recordLimit {
		if err := atomicfile.Rename(m.opts.Record, m.opts.Record+".1"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(m.opts.Record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return diagnose.WriteLine(f, diagnose.Line{At: now, Agent: c.Key, Evidence: c.redacted(m.opts), Diagnosis: c.diagnosis})
}

// redacted is the evidence without secrets, which an agent's texts and commands may contain.
func (c *examined) redacted(o Options) diagnose.Evidence {
	text, err := json.Marshal(c.evidence)
	if err != nil {
		return diagnose.Evidence{}
	}
	var e diagnose.Evidence
	if json.Unmarshal([]byte(o.redact(string(text))), &e) != nil {
		return diagnose.Evidence{Status: c.evidence.Status, Watched: c.evidence.Watched, Process: c.evidence.Process, Beat: c.evidence.Beat}
	}
	return e
}
