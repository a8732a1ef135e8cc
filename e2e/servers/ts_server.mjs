// The TypeScript SDK 1.x server of the end-to-end tests. Same tools and traces as py_server.py.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const append = (name, line) => appendFileSync(join(process.env.E2E_DIR, name), line + '\n');
append('pids', `${process.pid}`);
const trace = (tool, value) => append('trace', `${Date.now()} ${process.pid} ${tool} ${value}`);
const text = t => ({ content: [{ type: 'text', text: t }] });
const READ_ONLY = { readOnlyHint: true };
const IDEMPOTENT = { readOnlyHint: false, idempotentHint: true, destructiveHint: false };
const ITEM = 'test://item';

const mcp = new McpServer(
    { name: 'ts-server', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } }
);
const subscribed = new Set();
let level = 'none';

const run = async (tool, value, ms) => {
    trace(tool, value);
    if (ms) await sleep(ms);
    trace(`${tool}-done`, value);
    return text(`${tool} ${value} ${process.pid}`);
};
const timed = { value: z.string(), ms: z.number().optional() };
mcp.registerTool('echo', { inputSchema: { text: z.string() }, annotations: READ_ONLY }, async a => text(a.text));
mcp.registerTool('bump', { inputSchema: timed }, a => run('bump', a.value, a.ms));
mcp.registerTool('look', { inputSchema: timed, annotations: READ_ONLY }, a => run('look', a.value, a.ms));
mcp.registerTool('idem', { inputSchema: timed, annotations: IDEMPOTENT }, a => run('idem', a.value, a.ms));
mcp.registerTool(
    'slow',
    { inputSchema: { value: z.string(), steps: z.number(), ms: z.number() }, annotations: READ_ONLY },
    async ({ value, steps, ms }, extra) => {
        trace('slow', value);
        for (let step = 1; step <= steps; step++) {
            try {
                await sleep(ms, undefined, { signal: extra.signal });
            } catch (e) {
                trace('slow-cancelled', value);
                throw e;
            }
            const progressToken = extra._meta?.progressToken;
            if (progressToken !== undefined) {
                await extra.sendNotification({
                    method: 'notifications/progress',
                    params: { progressToken, progress: step, total: steps }
                });
            }
            trace('slow-step', `${value}/${step}`);
        }
        await sleep(100); // some clients handle an answer before the notification that came just before it
        return text(`slow ${value} ${process.pid}`);
    }
);
mcp.registerTool('fail', { annotations: READ_ONLY }, async () => { throw new Error('failed on purpose'); });
mcp.registerTool('pid', { annotations: READ_ONLY }, async () => text(`${process.pid}`));
mcp.registerTool('elicit', { inputSchema: { question: z.string() } }, async ({ question }) => {
    trace('elicit-asked', question);
    const r = await mcp.server.elicitInput({
        message: question,
        requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
    });
    trace('elicit', question);
    return text(`elicited ${r.content?.answer}`);
});
mcp.registerTool('sample', { inputSchema: { text: z.string() } }, async a => {
    trace('sample-asked', a.text);
    const r = await mcp.server.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: a.text } }],
        maxTokens: 16
    });
    trace('sample', a.text);
    return text(`sampled ${r.content.text}`);
});
mcp.registerTool('roots', {}, async () => {
    trace('roots-asked', '-');
    const r = await mcp.server.listRoots();
    trace('roots', '-');
    return text('roots ' + r.roots.map(x => x.uri).join(' '));
});
mcp.registerTool('touch', { inputSchema: { uri: z.string().optional() }, annotations: READ_ONLY }, async ({ uri = ITEM }) => {
    if (subscribed.has(uri)) await mcp.server.sendResourceUpdated({ uri });
    return text('touched');
});
mcp.registerTool('log', { inputSchema: { text: z.string() }, annotations: READ_ONLY }, async a => {
    await mcp.server.sendLoggingMessage({ level: 'info', data: a.text });
    return text(level);
});
mcp.registerTool('leave', { inputSchema: { code: z.number() } }, async ({ code }) => {
    setTimeout(() => process.exit(code), 500);
    return text(`leaving ${code}`);
});
mcp.registerTool('die', {}, async () => {
    trace('die', '-');
    process.kill(process.pid, 'SIGKILL');
    await sleep(10_000);
    return text('unreachable');
});
mcp.registerTool('marker', {}, async () => {
    process.stderr.write('__MCP_RESTART_REQUEST__\n');
    return text('restart requested');
});
mcp.registerResource('item', ITEM, { mimeType: 'text/plain' }, async uri => ({
    contents: [{ uri: uri.href, text: `item ${process.pid}` }]
}));
mcp.registerPrompt('hello', { argsSchema: { name: z.string() } }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `hello ${name}` } }]
}));
mcp.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => {
    trace('subscribe', params.uri);
    subscribed.add(params.uri);
    return {};
});
mcp.server.setRequestHandler(UnsubscribeRequestSchema, async ({ params }) => {
    trace('unsubscribe', params.uri);
    subscribed.delete(params.uri);
    return {};
});
mcp.server.setRequestHandler(SetLevelRequestSchema, async ({ params }) => {
    level = params.level;
    trace('level', level);
    return {};
});
await mcp.connect(new StdioServerTransport());
process.stdin.on('close', () => process.exit(0));
