package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// scope names what records.
const scope = "github.com/outlive-mcp/outlive"

// recorder turns what happens into spans, metrics and events. Any goroutine may use it.
type recorder struct {
	tracer trace.Tracer
	logger log.Logger

	serverDuration, clientDuration, sessionDuration, restartDuration, queueDuration metric.Float64Histogram
	outcomes, restarts, resent, crashes, recoveries, incidents                      metric.Int64Counter
}

// The buckets that the conventions advise for operations, and some that go on for sessions.
var (
	operationBounds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	sessionBounds   = []float64{1, 10, 60, 300, 900, 3600, 10800, 28800, 86400, 259200}
)

func newRecorder(tracer trace.Tracer, meter metric.Meter, logger log.Logger) (*recorder, error) {
	r := &recorder{tracer: tracer, logger: logger}
	var failed error
	times := func(name, help string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
		if err != nil {
			failed = err
		}
		return h
	}
	count := func(name, unit, help string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		if err != nil {
			failed = err
		}
		return c
	}
	r.serverDuration = times("mcp.server.operation.duration", "From the arrival of a client's request to its answer.", operationBounds)
	r.clientDuration = times("mcp.client.operation.duration", "From when a server was first given a request to its answer.", operationBounds)
	r.sessionDuration = times("mcp.client.session.duration", "How long a process of the server was connected.", sessionBounds)
	r.restartDuration = times("outlive.server.restart.duration", "From the beginning of a restart to the new process's answer.", operationBounds)
	r.queueDuration = times("outlive.request.queue.duration", "How long a request has waited for a server.", operationBounds)
	r.outcomes = count("outlive.request.outcomes", "{request}", "Requests of clients that are over, by outcome.")
	r.resent = count("outlive.request.resent", "{request}", "Requests that were sent again to a new process.")
	r.restarts = count("outlive.server.restarts", "{restart}", "Restarts that were begun, by cause.")
	r.crashes = count("outlive.server.crashes", "{crash}", "Processes that ended unexpectedly.")
	r.recoveries = count("outlive.agent.recoveries", "{recovery}", "Steps that were taken about agents.")
	r.incidents = count("outlive.incidents", "{incident}", "Incidents that were opened.")
	return r, failed
}

// call records a finished request of a client.
func (r *recorder) call(m *tap.Record, network bool) {
	c := m.Call
	end := c.Started.Add(ms(c.DurationMS))
	given := c.Started.Add(ms(c.HeldMS))
	common, tool := describe(m)
	failure := errorType(m)
	measured := append([]attribute.KeyValue{attribute.String("outlive.server.name", m.Server), attribute.String("mcp.method.name", m.Method)}, tool...)
	measured = append(measured, texts(map[string]string{"mcp.protocol.version": c.Version, "error.type": failure})...)
	ctx := context.Background()
	r.serverDuration.Record(ctx, c.DurationMS/1000, metric.WithAttributes(append(measured, transport(network))...))
	r.outcomes.Add(ctx, 1, metric.WithAttributes(attribute.String("outlive.server.name", m.Server), attribute.String("outlive.outcome", string(c.Outcome))))
	if c.HeldMS > 0 {
		r.queueDuration.Record(ctx, c.HeldMS/1000, metric.WithAttributes(attribute.String("outlive.server.name", m.Server)))
	}
	if c.Sends > 0 {
		r.clientDuration.Record(ctx, (c.DurationMS-c.HeldMS)/1000, metric.WithAttributes(measured...))
	}
	ids := idsOf(c)
	if !ids.sampled {
		return
	}
	name := m.Method
	if len(tool) > 0 && (m.Method == "tools/call" || m.Method == "prompts/get") {
		name += " " + m.Target
	}
	ctx = trace.ContextWithRemoteSpanContext(ids.into(ctx, ids.server), ids.parent)
	ctx, server := r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.Started),
		trace.WithAttributes(common...), trace.WithAttributes(transport(network)))
	if c.Sends > 0 {
		_, client := r.tracer.Start(ids.into(ctx, ids.client), name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(given), trace.WithAttributes(common...),
			trace.WithAttributes(attribute.Int("outlive.request.sends", c.Sends), attribute.Int("outlive.server.generation", m.Generation)))
		finish(client, m, failure, end)
	}
	finish(server, m, failure, end)
}

func finish(s trace.Span, m *tap.Record, failure string, end time.Time) {
	if failure != "" {
		s.SetAttributes(attribute.String("error.type", failure))
		s.SetStatus(codes.Error, m.Call.Reason)
	}
	s.End(trace.WithTimestamp(end))
}

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func transport(network bool) attribute.KeyValue {
	if network {
		return attribute.String("network.transport", "tcp")
	}
	return attribute.String("network.transport", "pipe")
}

// describe are the attributes of a request, and of these the ones that name its tool or prompt.
func describe(m *tap.Record) (all, target []attribute.KeyValue) {
	switch {
	case m.Target == "":
	case m.Method == "tools/call":
		target = []attribute.KeyValue{attribute.String("gen_ai.tool.name", m.Target), attribute.String("gen_ai.operation.name", "execute_tool")}
	case m.Method == "prompts/get":
		target = []attribute.KeyValue{attribute.String("gen_ai.prompt.name", m.Target)}
	default:
		all = append(all, attribute.String("mcp.resource.uri", m.Target))
	}
	all = append(all, target...)
	all = append(all, attribute.String("mcp.method.name", m.Method), attribute.String("outlive.server.name", m.Server), attribute.String("outlive.outcome", string(m.Call.Outcome)))
	all = append(all, texts(map[string]string{
		"jsonrpc.request.id": strings.Trim(string(m.ID), `"`), "mcp.protocol.version": m.Call.Version, "outlive.client.name": m.Client, "outlive.reason": m.Call.Reason,
	})...)
	if m.Call.Code != 0 {
		all = append(all, attribute.String("rpc.response.status_code", strconv.Itoa(m.Call.Code)))
	}
	return all, target
}

// texts are attributes by their names, without those that are empty.
func texts(all map[string]string) (list []attribute.KeyValue) {
	for name, text := range all {
		if text != "" {
			list = append(list, attribute.String(name, text))
		}
	}
	return list
}

// errorType is the error.type of the conventions; "": it went well, or was cancelled.
func errorType(m *tap.Record) string {
	switch c := m.Call; {
	case c.Outcome == tap.OK || c.Outcome == tap.Cancelled:
		return ""
	case c.Code != 0:
		return strconv.Itoa(c.Code)
	default:
		return string(c.Outcome) // tool_error is the conventions' own word
	}
}

// ids are those of the spans of a request.
type ids struct {
	trace          trace.TraceID
	server, client trace.SpanID
	parent         trace.SpanContext
	sampled        bool
}

// idsOf are the ids that outlive has made, and told the server. Without them, the spans get others.
func idsOf(c *tap.CallRecord) ids {
	given, ok := tracecontext.Parse(c.Traceparent)
	server, err := hex.DecodeString(c.ServerSpan)
	if !ok || err != nil || len(server) != 8 {
		return ids{sampled: true}
	}
	i := ids{trace: given.Trace, server: trace.SpanID(server), client: given.Span, sampled: given.Flags&tracecontext.Sampled != 0}
	if parent, err := hex.DecodeString(c.ParentSpan); err == nil && len(parent) == 8 {
		state, _ := trace.ParseTraceState(c.Tracestate) // one that is none is left out
		i.parent = trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: given.Trace, SpanID: trace.SpanID(parent), TraceFlags: trace.TraceFlags(given.Flags), TraceState: state, Remote: true,
		})
	}
	return i
}

// idsKey is where [givenIDs] finds the ids of the next span.
type idsKey struct{}

type nextIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (i ids) into(ctx context.Context, span trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, nextIDs{i.trace, span})
}

// givenIDs gives spans the ids that outlive has made for them.
type givenIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g givenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	next, _ := ctx.Value(idsKey{}).(nextIDs)
	for !next.trace.IsValid() {
		_, _ = rand.Read(next.trace[:]) // it never fails
	}
	return next.trace, g.NewSpanID(ctx, next.trace)
}

// NewSpanID implements sdktrace.IDGenerator.
func (givenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	next, _ := ctx.Value(idsKey{}).(nextIDs)
	for !next.span.IsValid() {
		_, _ = rand.Read(next.span[:])
	}
	return next.span
}

// told are the events that are exported: what restarts, recoveries and incidents consist of.
var told = map[event.Type]bool{
	event.RestartInitiated: true, event.RestartCompleted: true, event.ServerCrashed: true, event.ConnectionLost: true, event.ServerUnhealthy: true, event.SpawnFailed: true,
	event.StartTimeout: true, event.ReloadFailed: true, event.BreakerOpened: true, event.BreakerClosed: true, event.LimitReached: true,
	event.RequestResent: true, event.RequestLost: true, event.Upgraded: true, event.ServerUnusable: true,
	event.AgentChanged: true, event.AgentActed: true, event.IncidentOpened: true, event.IncidentAcknowledged: true, event.IncidentResolved: true,
}

// event records an event of an outlive, or of a monitor's home.
func (r *recorder) event(instance string, e overview.Event) {
	ctx := context.Background()
	server := attribute.String("outlive.server.name", e.Server)
	switch e.Type {
	case event.RestartInitiated:
		r.restarts.Add(ctx, 1, metric.WithAttributes(server, attribute.String("outlive.restart.cause", e.Cause)))
	case event.RestartCompleted:
		r.restartDuration.Record(ctx, e.Took.Seconds(), metric.WithAttributes(server))
	case event.RequestResent:
		r.resent.Add(ctx, 1, metric.WithAttributes(server))
	case event.ServerCrashed:
		r.crashes.Add(ctx, 1, metric.WithAttributes(server))
	case event.ServerExited:
		r.sessionDuration.Record(ctx, e.Lived.Seconds(), metric.WithAttributes(server))
	case event.AgentActed:
		r.recoveries.Add(ctx, 1, metric.WithAttributes(attribute.String("outlive.agent.name", e.Agent)))
	case event.IncidentOpened:
		r.incidents.Add(ctx, 1)
	}
	if !told[e.Type] {
		return
	}
	var record log.Record
	record.SetEventName("outlive." + string(e.Type))
	record.SetTimestamp(e.At)
	record.SetObservedTimestamp(time.Now())
	record.SetSeverity(severities[e.Level])
	record.SetSeverityText(e.Level)
	record.SetBody(attribute.StringValue(e.Message))
	record.AddAttributes(texts(map[string]string{
		"outlive.server.name": e.Server, "outlive.instance": instance, "outlive.agent.name": e.Agent, "outlive.restart.cause": e.Cause,
		"outlive.restart.source": e.Source, "outlive.reason": e.Reason,
	})...)
	if !e.OfMonitor() {
		record.AddAttributes(attribute.Int("outlive.server.generation", e.Generation))
	}
	r.logger.Emit(ctx, record)
}

// severities are those of the levels of the audit log.
var severities = map[string]log.Severity{"DEBUG": log.SeverityDebug, "INFO": log.SeverityInfo, "WARNING": log.SeverityWarn, "ERROR": log.SeverityError}
