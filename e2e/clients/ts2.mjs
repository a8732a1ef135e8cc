// The TypeScript SDK 2.x client, scriptable: node ts2.mjs legacy|auto|modern CMD ARG…|URL
// auto starts the command twice: a disposable sibling for the probe, then the real one. modern pins 2026-07-28.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Answers, commandLine, drive, say, tracedFetch } from './driver.mjs';

const { mode, url, requestInit, params } = commandLine();
const answers = new Answers();
await drive(answers, async () => {
    const client = new Client(
        { name: 'ts2', version: '1.0.0' },
        {
            capabilities: { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } },
            versionNegotiation: { mode: mode === 'modern' ? { pin: '2026-07-28' } : mode }
        }
    );
    client.setRequestHandler('elicitation/create', (request, ctx) => answers.elicit(request, ctx?.mcpReq?.signal));
    client.setRequestHandler('sampling/createMessage', () => answers.sample());
    client.setRequestHandler('roots/list', () => answers.roots());
    for (const method of ['notifications/message', 'notifications/resources/updated', 'notifications/tools/list_changed']) {
        client.setNotificationHandler(method, n => say({ event: 'notification', method: n.method, params: n.params }));
    }
    client.onerror = e => say({ event: 'error', message: `${e?.message ?? e}` });
    const transport = url ? new StreamableHTTPClientTransport(url, { fetch: tracedFetch, requestInit }) : new StdioClientTransport(params);
    await client.connect(transport);
    const era = client.getProtocolEra();
    const open = new Map();
    const modern = {
        subscribe: async s => {
            const subscription = await client.listen({ resourceSubscriptions: [s.uri] });
            open.set(s.uri, subscription);
            subscription.closed.then(how => how === 'local' || say({ event: 'subscription-ended', how }));
            return { honored: subscription.honoredFilter };
        },
        unsubscribe: async s => (await open.get(s.uri)?.close(), {}),
        ping: () => client.discover()
    };
    const legacy = {
        subscribe: s => client.subscribeResource({ uri: s.uri }),
        unsubscribe: s => client.unsubscribeResource({ uri: s.uri }),
        ping: () => client.ping(),
        level: s => client.setLoggingLevel(s.level)
    };
    return {
        client, era, version: client.getNegotiatedProtocolVersion(), pid: transport.pid,
        server: client.getServerVersion(), capabilities: client.getServerCapabilities(),
        ops: { callTool: (p, options) => client.callTool(p, options), ...(era === 'modern' ? modern : legacy) }
    };
});
