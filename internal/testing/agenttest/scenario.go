package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Scenario is a script of looks at one or more agents: what was seen at which time, what it must be called, and what must
// and must not be done until the morning. The scenarios in diagnose/testdata/scenarios are made from what people have reported.
type Scenario struct {
	Story   string // what happened, and why it is hard
	Policy  diagnose.Policy
	Looks   []Look // in order of time
	Demands []Demand
}

// Look is one look at one agent.
type Look struct {
	At       diagnose.Span // since the scenario began
	Agent    string
	Evidence diagnose.Evidence
	Want     diagnose.Class // what it must be called
}

// DemandKind is a kind of demand on a scenario.
type DemandKind string

// The demands. diagnose's tests ask whether there is a reason for each; what is then done about it remedy decides, and the
// monitor's tests live through the same scenarios to see that.
const (
	NeverKill   DemandKind = "never-kill"   // nothing of the agent's may be ended or started
	NeverTell   DemandKind = "never-tell"   // nobody may be woken
	MustTell    DemandKind = "must-tell"    // a human must be told by a time
	MustWait    DemandKind = "must-wait"    // it must be waited for an end that is known, from a time on, and nobody told
	MustRestart DemandKind = "must-restart" // it must have been ended, started or resumed by a time
)

// Demand is what must, or must not, come of a scenario for one agent.
type Demand struct {
	Kind  DemandKind
	Agent string
	By    diagnose.Span // of the musts
}

// script is one line of a scenario's looks. The evidence replaces the sections that it names; null empties one. What it
// does not name goes on ageing. With until, the same is looked at again and again, every so often.
type script struct {
	At       diagnose.Span              `json:"at"`
	Until    diagnose.Span              `json:"until"`
	Every    diagnose.Span              `json:"every"`
	Agent    string                     `json:"agent"`
	Evidence map[string]json.RawMessage `json:"evidence"`
	Want     diagnose.Class             `json:"want"`
}

// maxLooks bounds what a script can unfold to.
const maxLooks = 10_000

// ReadScenario reads a scenario: a txtar archive whose comment is the story, with the files
//
//	policy   one JSON object (optional): [diagnose.Policy], or "piv" for [diagnose.PIV] with its defaults
//	looks    JSON lines: at, until, every, agent, evidence, want
//	demands  lines: never-kill AGENT, never-tell AGENT, and with "by SPAN" must-tell, must-wait, must-restart AGENT
//
// Unknown members are errors, so that a mistake does not make a scenario easy.
func ReadScenario(text []byte) (Scenario, error) {
	for line := range bytes.Lines(text) {
		if string(bytes.TrimRight(line, "\r\n")) == "-- --" { // txtar panics at it
			return Scenario{}, fmt.Errorf("a part of a scenario has a name")
		}
	}
	archive := txtar.Parse(text)
	n := Scenario{Story: strings.TrimSpace(string(archive.Comment))}
	for _, f := range archive.Files {
		var err error
		switch f.Name {
		case "policy":
			n.Policy, err = readPolicy(f.Data)
		case "looks":
			n.Looks, err = readLooks(f.Data)
		case "demands":
			n.Demands, err = readDemands(f.Data)
		default:
			err = fmt.Errorf("no such part of a scenario")
		}
		if err != nil {
			return Scenario{}, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if n.Story == "" || len(n.Looks) == 0 || len(n.Demands) == 0 {
		return Scenario{}, fmt.Errorf("a scenario has a story, looks and demands")
	}
	return n, nil
}

func readPolicy(text []byte) (diagnose.Policy, error) {
	if string(bytes.TrimSpace(text)) == `"piv"` {
		return diagnose.PIV(0), nil
	}
	var p diagnose.Policy
	return p, strict(text, &p)
}

func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// readLooks unfolds the script.
func readLooks(text []byte) ([]Look, error) {
	var looks []Look
	latest := map[string]Look{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var s script
		if err := strict([]byte(line), &s); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		more, err := s.unfold(latest[s.Agent])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if looks = append(looks, more...); len(looks) > maxLooks {
			return nil, fmt.Errorf("line %d: more than %d looks", i+1, maxLooks)
		}
		latest[s.Agent] = looks[len(looks)-1]
	}
	slices.SortStableFunc(looks, func(a, b Look) int { return int(min(max(a.At-b.At, -1), 1)) })
	return looks, nil
}

// unfold makes the looks of one line.
func (s script) unfold(was Look) ([]Look, error) {
	if s.Agent == "" || s.Want == "" || s.At < was.At || s.At < 0 {
		return nil, fmt.Errorf("a look has an agent, a want, and a time that is not before the agent's last one")
	}
	e, err := replaced(Later(was.Evidence, s.At-was.At), s.Evidence)
	if err != nil {
		return nil, err
	}
	looks := []Look{{At: s.At, Agent: s.Agent, Evidence: e, Want: s.Want}}
	if s.Until == 0 {
		return looks, nil
	}
	if s.Every <= 0 || s.Until < s.At || (s.Until-s.At)/s.Every > maxLooks {
		return nil, fmt.Errorf("until %s every %s makes no sense", s.Until, s.Every)
	}
	for at := s.At + s.Every; at <= s.Until && at > 0; at += s.Every {
		looks = append(looks, Look{At: at, Agent: s.Agent, Evidence: Later(e, at-s.At), Want: s.Want})
	}
	return looks, nil
}

// replaced is the evidence with the sections that are given in place of its own.
func replaced(e diagnose.Evidence, sections map[string]json.RawMessage) (diagnose.Evidence, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return diagnose.Evidence{}, fmt.Errorf("write the evidence: %w", err)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		return diagnose.Evidence{}, fmt.Errorf("read the evidence again: %w", err)
	}
	for name, value := range sections {
		all[name] = value
	}
	if text, err = json.Marshal(all); err != nil {
		return diagnose.Evidence{}, fmt.Errorf("write the evidence: %w", err)
	}
	var merged diagnose.Evidence
	return merged, strict(text, &merged)
}

func readDemands(text []byte) ([]Demand, error) {
	var demands []Demand
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		d := Demand{Kind: DemandKind(words[0])}
		never := d.Kind == NeverKill || d.Kind == NeverTell
		must := d.Kind == MustTell || d.Kind == MustWait || d.Kind == MustRestart
		switch {
		case never && len(words) == 2:
		case must && len(words) == 4 && words[2] == "by":
			if err := d.By.UnmarshalText([]byte(words[3])); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		default:
			return nil, fmt.Errorf("line %d: %q is not a demand", i+1, line)
		}
		d.Agent = words[1]
		demands = append(demands, d)
	}
	return demands, nil
}
