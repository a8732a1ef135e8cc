// The TypeScript SDK 1.x client, scriptable: node ts1.mjs legacy CMD ARG…|URL; a URL that ends with /sse is spoken to by HTTP+SSE.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
    LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { Answers, commandLine, drive, say } from './driver.mjs';

const answers = new Answers();
await drive(answers, async () => {
    const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
    const client = new Client({ name: 'ts1', version: '1.0.0' }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, (request, extra) => answers.elicit(request, extra.signal));
    client.setRequestHandler(CreateMessageRequestSchema, () => answers.sample());
    client.setRequestHandler(ListRootsRequestSchema, () => answers.roots());
    for (const schema of [LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema]) {
        client.setNotificationHandler(schema, n => say({ event: 'notification', method: n.method, params: n.params }));
    }
    client.onerror = e => say({ event: 'error', message: `${e?.message ?? e}` });
    const { url, requestInit, params } = commandLine();
    const Remote = url?.pathname.endsWith('/sse') ? SSEClientTransport : StreamableHTTPClientTransport;
    const transport = url ? new Remote(url, { requestInit }) : new StdioClientTransport(params);
    const tell = transport.setProtocolVersion?.bind(transport);
    let version;
    transport.setProtocolVersion = v => ((version = v), tell?.(v));
    await client.connect(transport);
    return {
        client, era: 'legacy', version, pid: transport.pid,
        server: client.getServerVersion(), capabilities: client.getServerCapabilities(),
        ops: {
            callTool: (params, options) => client.callTool(params, undefined, options),
            ping: () => client.ping(),
            level: s => client.setLoggingLevel(s.level),
            subscribe: s => client.subscribeResource({ uri: s.uri }),
            unsubscribe: s => client.unsubscribeResource({ uri: s.uri })
        }
    };
});
