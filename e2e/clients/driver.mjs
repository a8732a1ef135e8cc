// The scriptable half that both TypeScript clients share: steps come in as JSON lines on stdin, one result line per
// step goes out on stdout (in the order in which they end, with the step's number), and everything else the client
// sees is an event line: notifications, errors, the end of the connection.
//
//   step    {"n":1,"op":"call","tool":"echo","args":{…},"meta":{…},"progress":true,"timeout":ms or "default","reset":true}
//   result  {"n":1,"result":{…},"progress":[…]}  or  {"n":1,"error":{"code":…,"message":…}}
//   event   {"event":"notification","method":…,"params":…} | {"event":"error","message":…} | {"event":"closed"}
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const say = line => process.stdout.write(JSON.stringify(line) + '\n');

/** A line for the failure of a test, with the time: what went over HTTP, and when. */
const note = line => appendFileSync(join(process.env.E2E_DIR, 'client.log'), `${Date.now()} ${line.slice(0, 400)}\n`);

let requests = 0;

/** fetch, which notes each request, the head of its response and every part of its body as it comes. */
export async function tracedFetch(input, init) {
    const n = ++requests;
    note(`http ${n} > ${init?.method ?? 'GET'} ${init?.body ?? ''}`);
    let response;
    try {
        response = await fetch(input, init);
    } catch (e) {
        note(`http ${n} failed: ${e}`);
        throw e;
    }
    note(`http ${n} < ${response.status} ${response.headers.get('content-type') ?? ''}`);
    if (!response.body) return response;
    const decoder = new TextDecoder();
    const noted = new TransformStream({
        transform(part, out) {
            note(`http ${n} < ${JSON.stringify(decoder.decode(part, { stream: true }))}`);
            out.enqueue(part);
        },
        flush: () => note(`http ${n} ended`)
    });
    return new Response(response.body.pipeThrough(noted), response);
}

/** What the client answers when the server asks: fixed values, an elicitation after release() if hold is on. */
export class Answers {
    held = [];
    hold = false;
    async elicit(request, signal) {
        say({ event: 'asked', method: 'elicitation/create', message: request.params.message });
        signal?.addEventListener('abort', () => say({ event: 'withdrawn', method: 'elicitation/create' }));
        if (this.hold) await new Promise(resolve => this.held.push(resolve));
        return { action: 'accept', content: { answer: 'yes', name: 'e2e' } };
    }
    async sample() {
        say({ event: 'asked', method: 'sampling/createMessage' });
        return { role: 'assistant', model: 'fixed', content: { type: 'text', text: 'fixed reply' } };
    }
    async roots() {
        say({ event: 'asked', method: 'roots/list' });
        return { roots: [{ uri: 'file:///e2e/root', name: 'root' }] };
    }
    release() {
        for (const resolve of this.held.splice(0)) resolve();
    }
}

const failure = e => ({ code: typeof e?.code === 'number' ? e.code : 0, name: `${e?.code ?? e?.name}`, message: `${e?.message ?? e}` });

export async function drive(answers, connect) {
    const started = performance.now();
    const ms = () => Math.round(performance.now() - started);
    let client, ops, closing = false;
    try {
        ({ client, ops, ...globalThis.connected } = await connect());
        client.onclose = () => closing || say({ event: 'closed' });
        say({ n: 0, result: { ...globalThis.connected, ms: ms() } });
    } catch (e) {
        say({ n: 0, error: failure(e), ms: ms() });
        process.exit(0);
    }
    const running = new Map();
    const run = {
        list: () => client.listTools(),
        resources: () => client.listResources(),
        prompts: () => client.listPrompts(),
        read: s => client.readResource({ uri: s.uri }),
        prompt: s => client.getPrompt({ name: s.name, arguments: s.args }),
        call: (s, options) => ops.callTool({ name: s.tool, arguments: s.args ?? {}, ...(s.meta && { _meta: s.meta }) }, options),
        hold: () => ((answers.hold = true), {}),
        release: () => ((answers.hold = false), answers.release(), {}),
        cancel: s => (running.get(s.target)?.abort('the test cancels'), {}),
        close: async () => {
            closing = true;
            const from = performance.now();
            await client.transport?.terminateSession?.(); // over HTTP a server hears of the end by DELETE only
            await client.close();
            return { ms: Math.round(performance.now() - from) };
        },
        ...ops
    };
    for await (const line of createInterface({ input: process.stdin })) {
        const step = JSON.parse(line);
        const abort = new AbortController();
        running.set(step.n, abort);
        const progress = [];
        const options = { signal: abort.signal, timeout: step.timeout === 'default' ? undefined : step.timeout ?? 30_000, resetTimeoutOnProgress: step.reset ?? false };
        if (step.progress) {
            options.onprogress = p => {
                if (p.message?.startsWith('Fulfilling input required')) return; // the SDK's own words, once for each round of questions
                progress.push(p.progress);
                say({ event: 'progress', n: step.n, progress: p.progress });
            };
        }
        Promise.resolve()
            .then(() => (run[step.op] ?? (() => { throw new Error(`no such step: ${step.op}`); }))(step, options))
            .then(result => say({ n: step.n, result, progress }), e => say({ n: step.n, error: failure(e), progress }))
            .then(() => step.op === 'close' && process.exit(0));
    }
    process.exit(0);
}

/** MODE CMD ARG…, or MODE URL [TOKEN], as given on the command line; a command gets the whole environment. */
export function commandLine() {
    const [mode, command, ...args] = process.argv.slice(2);
    const url = /^https?:/.test(command) ? new URL(command) : undefined;
    const requestInit = url && args[0] ? { headers: { Authorization: `Bearer ${args[0]}` } } : undefined;
    return { mode, url, requestInit, params: { command, args, env: process.env, stderr: 'inherit' } };
}
