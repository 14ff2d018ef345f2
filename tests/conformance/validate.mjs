// Holds popagent's streams to the official client, the npm package `ai`, at three levels:
//   1 every chunk satisfies the official schema;
//   2 the official reducer makes a message of the stream that the official validation accepts;
//   3 the state machine behind useChat goes through send, 409, stop, regenerate, cut, resume and 204 as it should.
//
//   node validate.mjs file <stream.sse>... [--message <assistant message to continue, JSON>]
//   node validate.mjs reduce <cases.json>                [{"stream": "<sse>", "message"?: {...}}] -> messages on stdout
//   node validate.mjs partial <texts.json>               ["{\"a\":1"] -> [{"value"?: ...}] on stdout
//   node validate.mjs live <baseUrl> [key] [--prompts <JSON>]
//
// Prompts for `live`: {"normal", "slow", "failing"}. The answer to `slow` must last some seconds; without `failing`
// (a prompt whose turn ends with an error chunk) that check is left out.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';

import {
  AbstractChat,
  DefaultChatTransport,
  parseJsonEventStream,
  parsePartialJson,
  readUIMessageStream,
  safeValidateUIMessages,
  uiMessageChunkSchema,
} from 'ai';

const ENDS = new Set(['finish', 'abort', 'error']);
const PATIENCE_MS = 60_000;

const bytesOf = text => new Blob([text]).stream();

async function strictChunks(body) {
  const chunks = [];
  for await (const parsed of parseJsonEventStream({ stream: body, schema: uiMessageChunkSchema })) {
    if (!parsed.success) throw new Error(`chunk ${chunks.length} is refused: ${parsed.error.message}`);
    chunks.push(parsed.value);
  }
  return chunks;
}

const streamOf = chunks =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

async function reduce(chunks, message) {
  const fallback = message ?? { id: '', role: 'assistant', parts: [] };
  let last = structuredClone(fallback);
  const options = { stream: streamOf(chunks), terminateOnError: true };
  if (message) options.message = last;
  for await (const next of readUIMessageStream(options)) last = next;
  return last;
}

async function validMessage(message) {
  const user = { id: 'user', role: 'user', parts: [{ type: 'text', text: 'hello' }] };
  const result = await safeValidateUIMessages({ messages: [user, message] });
  if (!result.success) throw new Error(`the message is refused: ${result.error.message}`);
}

async function validateStream(text, message) {
  assert.ok(text.endsWith('data: [DONE]\n\n'), 'the stream does not end with [DONE]');
  const chunks = await strictChunks(bytesOf(text));
  assert.equal(chunks[0]?.type, 'start', 'the stream does not begin with start');
  assert.ok(ENDS.has(chunks.at(-1).type), 'the stream has no finish, abort or error before [DONE]');
  await validMessage(await reduce(chunks.filter(chunk => chunk.type !== 'error'), message));
  return chunks;
}

// ---- level 3: the state machine of useChat, without React -----------------------------------------------------------

class State {
  messages = [];
  status = 'ready';
  error = undefined;
  pushMessage = message => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };
  snapshot = thing => structuredClone(thing);
}

class Chat extends AbstractChat {
  constructor(options) {
    super({ ...options, state: new State() });
  }
}

const textOf = message => message.parts.filter(part => part.type === 'text').map(part => part.text).join('');
const openParts = message =>
  message.parts.filter(part => ['streaming', 'input-streaming', 'input-available'].includes(part.state));

async function until(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

class Live {
  constructor(baseUrl, key, prompts) {
    this.api = `${baseUrl.replace(/\/$/, '')}/api/chat`;
    this.headers = key ? { 'x-popagent-key': key } : {};
    this.prompts = prompts;
    this.done = [];
    this.left = [];
  }

  chat({ id = `conformance-${randomUUID()}`, fetch } = {}) {
    const transport = new DefaultChatTransport({ api: this.api, headers: this.headers, ...(fetch ? { fetch } : {}) });
    const finished = [];
    const chat = new Chat({ id, transport, onFinish: event => finished.push(event) });
    return Object.assign(chat, { finished });
  }

  async check(name, run) {
    try {
      await run();
    } catch (error) {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    }
    this.done.push(name);
  }

  streamUrl = id => `${this.api}/${encodeURIComponent(id)}/stream`;

  // Sends without waiting for the end, and returns once text has arrived.
  async underWay(chat, prompt = this.prompts.slow) {
    const ended = chat.sendMessage({ text: prompt });
    await until(
      () => chat.status === 'error' || (chat.lastMessage?.role === 'assistant' && textOf(chat.lastMessage)),
      'the first text',
    );
    assert.equal(chat.status, 'streaming', chat.error?.message ?? 'the slow answer is already over');
    return { ended };
  }

  settled(chat) {
    assert.equal(chat.status, 'ready', chat.error?.message);
    assert.equal(chat.error, undefined);
    assert.equal(chat.lastMessage.role, 'assistant');
    assert.deepEqual(openParts(chat.lastMessage), []);
    return validMessage(chat.lastMessage);
  }

  async strict() {
    const id = `conformance-${randomUUID()}`;
    const messages = [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text: this.prompts.normal }] }];
    const response = await fetch(this.api, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.headers },
      body: JSON.stringify({ id, messages, trigger: 'submit-message' }),
    });
    assert.equal(response.status, 200, await (response.ok ? '' : response.text()));
    assert.match(response.headers.get('content-type'), /^text\/event-stream/);
    assert.equal(response.headers.get('x-vercel-ai-ui-message-stream'), 'v1');
    const chunks = await validateStream(await response.text());
    assert.equal(chunks.at(-1).type, 'finish', `the turn ended with ${JSON.stringify(chunks.at(-1))}`);
    assert.ok(chunks[0].messageId, 'start carries no message id');
  }

  async sendAndRegenerate() {
    const chat = this.chat();
    await chat.sendMessage({ text: this.prompts.normal });
    await this.settled(chat);
    assert.equal(chat.messages.length, 2);
    assert.ok(textOf(chat.lastMessage), 'the answer is blank');
    assert.equal(chat.finished.at(-1).isError, false);
    const first = chat.lastMessage.id;

    await chat.regenerate();
    await this.settled(chat);
    assert.equal(chat.messages.length, 2);
    assert.notEqual(chat.lastMessage.id, first, 'a regenerated answer has the id of the old one');

    await chat.sendMessage({ text: this.prompts.normal });
    await this.settled(chat);
    assert.equal(chat.messages.length, 4);

    const messages = structuredClone(chat.messages);
    await chat.resumeStream();
    assert.equal(chat.status, 'ready', '204 must leave the chat ready');
    assert.deepEqual(chat.messages, messages);
    assert.equal((await fetch(this.streamUrl(chat.id), { headers: this.headers })).status, 204);
  }

  async unknownId() {
    const response = await fetch(this.streamUrl(`conformance-${randomUUID()}`), { headers: this.headers });
    assert.equal(response.status, 204);
  }

  // One turn: a second send is refused with 409, readers who come in its middle get the same message.
  async conflictAndResume() {
    const chat = this.chat();
    const { ended } = await this.underWay(chat);

    const rival = this.chat({ id: chat.id });
    await rival.sendMessage({ text: 'something else' });
    assert.equal(rival.status, 'error', 'a send into a running turn must be refused');
    assert.ok(rival.error.message.length > 0 && rival.error.message.length < 2000);

    const refused = await fetch(this.api, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.headers },
      body: JSON.stringify({
        id: chat.id,
        messages: [{ id: randomUUID(), role: 'user', parts: [{ type: 'text', text: 'something else' }] }],
      }),
    });
    assert.equal(refused.status, 409);
    assert.equal((await refused.json()).code, 'turn_running');

    const readers = [this.chat({ id: chat.id }), this.chat({ id: chat.id })];
    const first = readers[0].resumeStream();
    await until(() => readers[0].lastMessage && textOf(readers[0].lastMessage), 'the first reader');
    assert.equal(chat.status, 'streaming', 'the turn was over before anybody could join it');
    await Promise.all([first, readers[1].resumeStream(), ended]);
    for (const each of [chat, ...readers]) await this.settled(each);
    for (const reader of readers) {
      assert.equal(reader.messages.length, 1);
      assert.deepEqual(reader.lastMessage, chat.lastMessage, 'the resumed message differs');
    }
  }

  async serverStop() {
    const chat = this.chat();
    const { ended } = await this.underWay(chat);
    const response = await fetch(`${this.api}/${encodeURIComponent(chat.id)}/stop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.headers },
    });
    assert.ok(response.ok, `stop answered ${response.status}`);
    await ended;
    await this.settled(chat);
    assert.ok(textOf(chat.lastMessage), 'the partial answer is gone');
    await chat.resumeStream();
    assert.equal(chat.status, 'ready');
  }

  // The client's own stop closes the connection and nothing else: the turn goes on and can be read by another.
  async clientStop() {
    const chat = this.chat();
    const { ended } = await this.underWay(chat);
    await chat.stop();
    await ended;
    assert.equal(chat.status, 'ready');
    assert.equal(chat.finished.at(-1).isAbort, true);

    const reader = this.chat({ id: chat.id });
    await reader.resumeStream();
    await this.settled(reader);
    assert.ok(
      textOf(reader.lastMessage).startsWith(textOf(chat.lastMessage)) && openParts(reader.lastMessage).length === 0,
      'the turn did not go on after the connection was closed',
    );
  }

  // The line breaks in mid-answer; the same chat resumes and has every word once.
  async cutAndResume() {
    let cutNow;
    const cut = new Promise(resolve => (cutNow = resolve));
    let first = true;
    const chat = this.chat({
      fetch: async (...request) => {
        const response = await fetch(...request);
        if (!first || !response.ok) return response;
        first = false;
        const reader = response.body.getReader();
        const broken = cut.then(() => Promise.reject(new TypeError('network connection lost')));
        broken.catch(() => {});
        return new Response(
          new ReadableStream({
            async pull(controller) {
              const { done, value } = await Promise.race([reader.read(), broken]).catch(error => {
                reader.cancel().catch(() => {});
                throw error;
              });
              if (done) controller.close();
              else controller.enqueue(value);
            },
          }),
          { status: response.status, headers: response.headers },
        );
      },
    });
    const { ended } = await this.underWay(chat);
    const witness = this.chat({ id: chat.id });
    const watched = witness.resumeStream();
    await until(() => witness.lastMessage?.parts.length > 0, 'the witness');
    cutNow();
    await ended;
    assert.equal(chat.status, 'error', 'a cut must show as an error');
    assert.ok(textOf(chat.lastMessage), 'the partial answer is gone');

    await chat.resumeStream();
    await watched;
    await this.settled(chat);
    await this.settled(witness);
    assert.equal(chat.messages.length, 2, 'the resumed answer became another message');
    assert.deepEqual(chat.lastMessage, witness.lastMessage);
  }

  async failingTurn() {
    const chat = this.chat();
    await chat.sendMessage({ text: this.prompts.failing });
    assert.equal(chat.status, 'error', 'the failing turn did not fail');
    assert.ok(chat.error.message.length > 0, 'the error says nothing');
    assert.equal(chat.finished.at(-1).isError, true);
    if (chat.lastMessage.role === 'assistant') {
      assert.deepEqual(openParts(chat.lastMessage), [], 'open parts must be closed before the error');
    }
    await chat.sendMessage({ text: this.prompts.normal });
    await this.settled(chat);
  }

  async run() {
    await this.check('strict', () => this.strict());
    await this.check('send, regenerate, send again, 204', () => this.sendAndRegenerate());
    await this.check('204 for an unknown id', () => this.unknownId());
    await this.check('409 and resume in mid-turn by two readers', () => this.conflictAndResume());
    await this.check('stop by the server', () => this.serverStop());
    await this.check('stop by the client alone', () => this.clientStop());
    await this.check('cut and resume', () => this.cutAndResume());
    if (this.prompts.failing) await this.check('error', () => this.failingTurn());
    else this.left.push('error');
    return { checks: this.done, leftOut: this.left };
  }
}

// ---- commands -------------------------------------------------------------------------------------------------------

async function json(path) {
  return JSON.parse(await readFile(path, 'utf8'));
}

async function reduceCase({ stream, message }) {
  try {
    const chunks = await strictChunks(bytesOf(stream));
    const reduced = await reduce(chunks, message);
    const valid = await validMessage(reduced).then(
      () => null,
      error => error.message,
    );
    return { message: reduced, valid };
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
}

const commands = {
  async file(paths, options) {
    const message = options.message ? await json(options.message) : undefined;
    const results = {};
    for (const path of paths) results[path] = (await validateStream(await readFile(path, 'utf8'), message)).length;
    return results;
  },
  async reduce([path]) {
    return Promise.all((await json(path)).map(reduceCase));
  },
  async partial([path]) {
    const parsed = await Promise.all((await json(path)).map(text => parsePartialJson(text)));
    return parsed.map(({ value }) => ({ value }));
  },
  async live([baseUrl, key], options) {
    const prompts = {
      normal: 'Say hello in one short sentence.',
      slow: 'Count from one to three hundred in words, one number a line, and nothing else.',
      ...(options.prompts ? JSON.parse(options.prompts) : {}),
    };
    return new Live(baseUrl, key, prompts).run();
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { message: { type: 'string' }, prompts: { type: 'string' } },
});
const command = commands[positionals[0]];
if (!command || positionals.length < 2) {
  console.error('usage: validate.mjs file <path>... | reduce <path> | partial <path> | live <baseUrl> [key]');
  process.exit(2);
}
try {
  process.stdout.write(JSON.stringify(await command(positionals.slice(1), values)) + '\n', () => process.exit(0));
} catch (error) {
  console.error(error.stack ?? String(error));
  process.exit(1);
}
