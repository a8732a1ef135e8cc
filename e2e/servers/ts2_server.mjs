// The TypeScript SDK 2.x server of the end-to-end tests: one factory for both eras.
// --modern refuses the initialize handshake (a server that speaks 2026-07-28 only).
// Same tools and traces as py_server.py; it asks its client through input_required results.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const append = (name, line) => appendFileSync(join(process.env.E2E_DIR, name), line + '\n');
append('pids', `${process.pid}`);
const trace = (tool, value) => append('trace', `${Date.now()} ${process.pid} ${tool} ${value}`);
const text = t => ({ content: [{ type: 'text', text: t }] });
const READ_ONLY = { readOnlyHint: true };
const IDEMPOTENT = { readOnlyHint: false, idempotentHint: true, destructiveHint: false };
const ITEM = 'test://item';
const timed = z.object({ value: z.string(), ms: z.number().optional() });

const run = async (tool, value, ms) => {
    trace(tool, value);
    if (ms) await sleep(ms);
    trace(`${tool}-done`, value);
    return text(`${tool} ${value} ${process.pid}`);
};

function tools(mcp, subscribed) {
    mcp.registerTool('echo', { inputSchema: z.object({ text: z.string() }), annotations: READ_ONLY }, async a => text(a.text));
    mcp.registerTool('bump', { inputSchema: timed }, a => run('bump', a.value, a.ms));
    mcp.registerTool('look', { inputSchema: timed, annotations: READ_ONLY }, a => run('look', a.value, a.ms));
    mcp.registerTool('idem', { inputSchema: timed, annotations: IDEMPOTENT }, a => run('idem', a.value, a.ms));
    mcp.registerTool(
        'slow',
        { inputSchema: z.object({ value: z.string(), steps: z.number(), ms: z.number() }), annotations: READ_ONLY },
        async ({ value, steps, ms }, ctx) => {
            trace('slow', value);
            for (let step = 1; step <= steps; step++) {
                try {
                    await sleep(ms, undefined, { signal: ctx.mcpReq.signal });
                } catch (e) {
                    trace('slow-cancelled', value);
                    throw e;
                }
                const progressToken = ctx.mcpReq._meta?.progressToken;
                if (progressToken !== undefined) {
                    await ctx.mcpReq.notify({
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
    mcp.registerTool('touch', { inputSchema: z.object({ uri: z.string().optional() }), annotations: READ_ONLY }, async ({ uri = ITEM }) => {
        if (subscribed === null || subscribed.has(uri)) await mcp.server.sendResourceUpdated({ uri });
        return text('touched');
    });
    mcp.registerTool('leave', { inputSchema: z.object({ code: z.number() }) }, async ({ code }) => {
        setTimeout(() => process.exit(code), 50);
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
}

function asking(mcp) {
    mcp.registerTool('elicit', { inputSchema: z.object({ question: z.string() }) }, async ({ question }, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'answer');
        if (got.kind === 'elicit') {
            trace('elicit', question);
            return text(`elicited ${got.content?.answer}`);
        }
        trace('elicit-asked', question);
        return inputRequired({
            inputRequests: {
                answer: inputRequired.elicit({ message: question, requestedSchema: z.object({ answer: z.string() }) })
            }
        });
    });
    mcp.registerTool('sample', { inputSchema: z.object({ text: z.string() }) }, async (a, ctx) => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'reply');
        if (got.kind === 'sampling') {
            trace('sample', a.text);
            return text(`sampled ${got.result.content.text}`);
        }
        trace('sample-asked', a.text);
        const messages = [{ role: 'user', content: { type: 'text', text: a.text } }];
        return inputRequired({ inputRequests: { reply: inputRequired.createMessage({ messages, maxTokens: 16 }) } });
    });
    mcp.registerTool('roots', {}, async ctx => {
        const got = inputResponse(ctx.mcpReq.inputResponses, 'roots');
        if (got.kind === 'roots') {
            trace('roots', '-');
            return text('roots ' + got.roots.map(x => x.uri).join(' '));
        }
        trace('roots-asked', '-');
        // inputRequired.listRoots() has no params, which the Go SDK 1.8.0 client cannot decode.
        return inputRequired({ inputRequests: { roots: { method: 'roots/list', params: {} } } });
    });
}

serveStdio(
    ({ era }) => {
        const mcp = new McpServer(
            { name: 'ts2-server', version: '1.0.0' },
            { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } } }
        );
        const subscribed = era === 'legacy' ? new Set() : null;
        let level = 'none';
        tools(mcp, subscribed);
        asking(mcp);
        mcp.registerTool('log', { inputSchema: z.object({ text: z.string() }), annotations: READ_ONLY }, async (a, ctx) => {
            await ctx.mcpReq.log('info', a.text);
            return text(level);
        });
        mcp.registerResource('item', ITEM, { mimeType: 'text/plain' }, async uri => ({
            contents: [{ uri: uri.href, text: `item ${process.pid}` }]
        }));
        mcp.registerPrompt('hello', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
            messages: [{ role: 'user', content: { type: 'text', text: `hello ${name}` } }]
        }));
        if (era === 'legacy') {
            mcp.server.setRequestHandler('resources/subscribe', async ({ params }) => {
                trace('subscribe', params.uri);
                subscribed.add(params.uri);
                return {};
            });
            mcp.server.setRequestHandler('resources/unsubscribe', async ({ params }) => {
                trace('unsubscribe', params.uri);
                subscribed.delete(params.uri);
                return {};
            });
            mcp.server.setRequestHandler('logging/setLevel', async ({ params }) => {
                level = params.level;
                trace('level', level);
                return {};
            });
        }
        return mcp;
    },
    { legacy: process.argv.includes('--modern') ? 'reject' : 'serve' }
);
