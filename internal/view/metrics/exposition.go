package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/latency"
)

// Label names. Those of MCP are as the semantic conventions of OpenTelemetry have them, in Prometheus' spelling.
const (
	labelServer  = "server"
	labelAgent   = "agent"
	labelMethod  = "mcp_method_name"
	labelTool    = "gen_ai_tool_name"
	labelError   = "error_type"
	labelOutcome = "outcome"
)

// operationBuckets are those that the conventions advise for mcp.*.operation.duration.
var operationBuckets = []time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
}

// sessionBuckets go on: sessions last for hours.
var sessionBuckets = []time.Duration{
	time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour, 24 * time.Hour, 72 * time.Hour,
}

// What there is now.
var (
	buildInfo = &family{name: "outlive_build_info", kind: gauge, help: "1, with the version of the outlive that was asked."}
	instances = &family{name: "outlive_instances", kind: gauge, help: "Running outlives: runs, gateways, and daemons of shared servers; silent ones do not answer."}

	serverUp       = &family{name: "outlive_server_up", kind: gauge, help: "Processes of the server that answer."}
	serverFailed   = &family{name: "outlive_server_failed", kind: gauge, help: "Processes of the server that cannot be used; at least 1 while the server cannot be used."}
	serverInFlight = &family{name: "outlive_server_requests_in_flight", kind: gauge, help: "Requests the server is working on."}
	serverQueued   = &family{name: "outlive_server_requests_queued", kind: gauge, help: "Requests that wait for the server."}
	serverResident = &family{name: "outlive_server_resident_bytes", kind: gauge, help: "Memory of the server's processes and all they started."}
	serverRestarts = &family{name: "outlive_server_restarts", kind: gauge, help: "Restarts of the server since the running outlive that keeps it has started."}
	serverTools    = &family{name: "outlive_server_tools", kind: gauge, help: "Tools the server shows."}

	monitorUp         = &family{name: "outlive_monitor_up", kind: gauge, help: "1 while a monitor watches the agents."}
	agentState        = &family{name: "outlive_agent_state", kind: gauge, help: "1 for the state that the agent is in."}
	agentTrouble      = &family{name: "outlive_agent_trouble", kind: gauge, help: "1 while something is wrong with the agent."}
	agentNeedsPerson  = &family{name: "outlive_agent_needs_person", kind: gauge, help: "1 while the agent waits for a person."}
	agentTokens       = &family{name: "outlive_agent_session_tokens", kind: gauge, help: "Tokens of the agent's sessions that are known."}
	incidentsOpen     = &family{name: "outlive_incidents_open", kind: gauge, help: "Incidents that are not over, by severity."}
	incidentsWaiting  = &family{name: "outlive_incidents_waiting", kind: gauge, help: "Incidents that are not over and that nobody has acknowledged."}
	incidentsUntold   = &family{name: "outlive_incidents_untold", kind: gauge, help: "Incidents that are not over and of which a channel did not get the last message."}
	troubleOfOverview = &family{name: "outlive_unreadable", kind: gauge, help: "Sources that could not be looked at."}
)

// What only grows.
var (
	callsTotal      = &family{name: "outlive_requests_total", kind: counter, help: "Requests of clients that are over, by method, tool and outcome."}
	resentTotal     = &family{name: "outlive_requests_resent_total", kind: counter, help: "Requests that were sent again to a new process."}
	lostTotal       = &family{name: "outlive_requests_lost_total", kind: counter, help: "Requests whose process ended while it had them, so that their outcome is unknown."}
	restartsTotal   = &family{name: "outlive_server_restarts_total", kind: counter, help: "Restarts of the server that were begun, by cause."}
	crashesTotal    = &family{name: "outlive_server_crashes_total", kind: counter, help: "Processes of the server that ended unexpectedly."}
	failedStarts    = &family{name: "outlive_server_failed_starts_total", kind: counter, help: "Processes that could not be started, or did not answer the handshake."}
	connectionsLost = &family{name: "outlive_server_connections_lost_total", kind: counter, help: "Connections to a remote server that ended, or did not come about."}
	hangsTotal      = &family{name: "outlive_server_hangs_total", kind: counter, help: "Processes that were ended because they did not work any more."}
	reloadsFailed   = &family{name: "outlive_server_failed_reloads_total", kind: counter, help: "Planned restarts that came to nothing; the old process went on."}
	breakersOpened  = &family{name: "outlive_server_breaker_opened_total", kind: counter, help: "Times that the server was not restarted any more because it had crashed too often."}
	eventsTotal     = &family{name: "outlive_events_total", kind: counter, help: "Events of outlive, by the event_type of the audit log."}
	recoveries      = &family{name: "outlive_agent_recoveries_total", kind: counter, help: "Steps that were taken about the agent."}
	recoveredTotal  = &family{name: "outlive_agent_recoveries_proved_total", kind: counter, help: "Steps after which the agent worked for as long as the trouble before had lasted."}
	incidentsTotal  = &family{name: "outlive_incidents_opened_total", kind: counter, help: "Incidents that were opened, by class."}
	resolvedTotal   = &family{name: "outlive_incidents_resolved_total", kind: counter, help: "Incidents that are over, by class."}
	restartDuration = &family{name: "outlive_server_restart_duration_seconds", kind: histogram, buckets: operationBuckets,
		help: "Time from the beginning of a restart to the new process's answer."}
	serverOperation = &family{name: "mcp_server_operation_duration_seconds", kind: histogram, buckets: operationBuckets,
		help: "Time from the arrival of a client's request to its answer."}
	clientOperation = &family{name: "mcp_client_operation_duration_seconds", kind: histogram, buckets: operationBuckets,
		help: "Time from when a server was given a request to its answer."}
	serverSession = &family{name: "mcp_server_session_duration_seconds", kind: histogram, buckets: sessionBuckets,
		help: "Time that a client was connected to outlive run."}
	clientSession = &family{name: "mcp_client_session_duration_seconds", kind: histogram, buckets: sessionBuckets,
		help: "Time that a process of the server was connected to outlive."}
)

// ContentType is that of Prometheus' text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// kind is a type of metric in Prometheus' words.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

// family is one metric.
type family struct {
	name, help string
	kind       kind
	buckets    []time.Duration // of a histogram
}

// series is one line of a metric, or the lines of one histogram.
type series struct {
	value float64
	times latency.Histogram
}

// exposition are metrics with their series.
type exposition map[*family]map[string]*series

// of returns the series with these labels, pairs of name and value; those without a value are left out.
func (x exposition) of(f *family, labels []string) *series {
	var text strings.Builder
	for pair := range slices.Chunk(labels, 2) {
		if pair[1] == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(pair[0] + `="` + labelValue(pair[1]) + `"`)
	}
	if x[f] == nil {
		x[f] = map[string]*series{}
	}
	s := x[f][text.String()]
	if s == nil {
		s = &series{}
		x[f][text.String()] = s
	}
	return s
}

// add adds to the value of a series.
func (x exposition) add(f *family, value float64, labels ...string) { x.of(f, labels).value += value }

// count is add for a counter: a series that would be zero is left out.
func (x exposition) count(f *family, n int64, labels ...string) {
	if n > 0 {
		x.add(f, float64(n), labels...)
	}
}

// observe adds what a histogram has counted; nil: nothing.
func (x exposition) observe(f *family, h *latency.Histogram, labels ...string) {
	if h != nil && h.Count() > 0 {
		x.of(f, labels).times.Merge(h)
	}
}

// text is the exposition in Prometheus' text format, ordered by names and labels.
func (x exposition) text() []byte {
	var b bytes.Buffer
	for _, f := range slices.SortedFunc(maps.Keys(x), func(a, b *family) int { return cmp.Compare(a.name, b.name) }) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, labels := range slices.Sorted(maps.Keys(x[f])) {
			if s := x[f][labels]; f.kind == histogram {
				writeHistogram(&b, f, labels, &s.times)
			} else {
				writeLine(&b, f.name, labels, s.value)
			}
		}
	}
	return b.Bytes()
}

func writeHistogram(b *bytes.Buffer, f *family, labels string, h *latency.Histogram) {
	joined := labels
	if joined != "" {
		joined += ","
	}
	for _, at := range f.buckets {
		writeLine(b, f.name+"_bucket", joined+`le="`+number(at.Seconds())+`"`, float64(h.Below(at)))
	}
	writeLine(b, f.name+"_bucket", joined+`le="+Inf"`, float64(h.Count()))
	writeLine(b, f.name+"_sum", labels, h.Sum().Seconds())
	writeLine(b, f.name+"_count", labels, float64(h.Count()))
}

func writeLine(b *bytes.Buffer, name, labels string, value float64) {
	b.WriteString(name)
	if labels != "" {
		b.WriteString("{" + labels + "}")
	}
	b.WriteString(" " + number(value) + "\n")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// labelValue formats the value of a label: valid UTF-8, with these three characters escaped and no others.
func labelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
