// Somebody else's Telegram for tests, npm telegram-test-api, behind a small door: that server knows no
// multipart/form-data, in which the Bot API is spoken here, so the door hands every request on as JSON.
//
// On stdout, one line of JSON: {"url": …}. POST /press {"message_id": …, "data": …} lets a human press a button, GET
// /messages shows what the chat shows, GET /polls how often the bot has asked for updates. It ends with its stdin.
import http from "node:http";
import net from "node:net";
import api from "telegram-test-api";

const { TelegramServer = api } = api.default ?? api;
const [token, chat] = process.argv.slice(2);

const freePort = () => new Promise((resolve) => {
  const probe = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});

// started starts the server, which must be told its port, again if another program has taken it meanwhile.
async function started(tries) {
  const server = new TelegramServer({ host: "127.0.0.1", port: await freePort() });
  try {
    await server.start();
    return server;
  } catch (error) {
    if (error.code !== "EADDRINUSE" || tries === 1) throw error;
    return started(tries - 1);
  }
}

const server = await started(10);
const human = server.getClient(token, { userId: Number(chat), chatId: Number(chat), firstName: "Ada", userName: "ada" });

let polls = 0;

// asJSON is the body of a request in either form.
async function asJSON(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("multipart/form-data") && body.length > 0) {
    const form = await new Response(body, { headers: { "content-type": type } }).formData();
    // What is an object or a list comes as JSON in its field.
    return Object.fromEntries([...form].map(([name, value]) => [name, /^[[{]/.test(value) && name !== "text" ? JSON.parse(value) : value]));
  }
  return body.length > 0 && type.startsWith("application/json") ? JSON.parse(body) : {};
}

async function handle(request) {
  const body = await asJSON(request);
  if (request.url === "/press") {
    const message = { message_id: body.message_id, chat: { id: Number(chat), type: "private" } };
    return human.sendCallback(human.makeCallbackQuery(body.data, { message }));
  }
  if (request.url === "/polls") return { polls };
  if (request.url === "/messages") {
    return server.storage.botMessages.map((m) => ({ ...m.message, message_id: m.messageId }));
  }
  if (request.url.endsWith("/getUpdates")) polls++;
  const answer = await fetch(server.config.apiURL + request.url, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  return answer.json();
}

const door = http.createServer((request, response) => {
  handle(request).catch((error) => ({ ok: false, error_code: 500, description: String(error) })).then((answer) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
});
door.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + door.address().port })));
process.stdin.resume().on("end", () => process.exit(0));
