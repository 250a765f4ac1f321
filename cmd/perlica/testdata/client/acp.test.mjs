// A client written with the TypeScript SDK in front of `perlica acp`, as an editor is. AGENT is how
// perlica is started, SCRIPT what to say, PROJECTS two directories; each is JSON.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";

const script = JSON.parse(process.env.SCRIPT);
const [project, other] = JSON.parse(process.env.PROJECTS);
const { agent } = acp.methods;

// connect starts perlica, initializes it and hands on what a test needs. When the test is done the
// client closes its side, and perlica has to leave by itself.
async function connect(talk, version = 1) {
  const perlica = spawn("perlica", ["acp", ...JSON.parse(process.env.AGENT)], { stdio: ["pipe", "pipe", "inherit"] });
  const left = new Promise((resolve) => perlica.on("exit", (code, signal) => resolve(code ?? signal)));
  const seen = { text: {}, asked: 0, kind: "allow_once" };
  const client = acp
    .client({ name: "typescript" })
    .onNotification(acp.methods.client.session.update, ({ params: { sessionId, update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") seen.text[sessionId] = (seen.text[sessionId] ?? "") + update.content.text;
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.asked++;
      const { optionId } = params.options.find((o) => o.kind === seen.kind);
      return { outcome: { outcome: "selected", optionId } };
    });
  const talking = client.connectWith(acp.ndJsonStream(Writable.toWeb(perlica.stdin), Readable.toWeb(perlica.stdout)), async (ctx) => {
    const info = await ctx.request(agent.initialize, { protocolVersion: version, clientCapabilities: {}, clientInfo: { name: "typescript", version: "1" } });
    assert.equal(info.protocolVersion, 1);
    const open = async (cwd) => (await ctx.request(agent.session.new, { cwd, mcpServers: [] })).sessionId;
    const prompt = (sessionId, text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    await talk({ ctx, info, seen, open, prompt });
  });
  await talking.finally(() => perlica.stdin.end());
  assert.equal(await left, 0);
}

let kept; // a session of the first test

test("a turn, a permission both ways, a cancel", () =>
  connect(async ({ ctx, seen, open, prompt }) => {
    const id = (kept = await open(project));
    assert.equal((await prompt(id, script.plain)).stopReason, "end_turn");
    assert.match(seen.text[id], new RegExp(script.said));
    assert.equal((await prompt(id, script.ask)).stopReason, "end_turn");
    assert.equal(seen.asked, 1);
    seen.kind = "reject_once";
    await prompt(id, script.askAgain); // agents differ in how such a turn ends
    assert.equal(seen.asked, 2);
    const turn = prompt(id, script.slow);
    while (!seen.text[id].includes(script.begun)) await new Promise(setImmediate);
    await ctx.notify(agent.session.cancel, { sessionId: id });
    assert.equal((await turn).stopReason, "cancelled");
  }));

test("the session is gone on with in another process", () =>
  connect(async ({ ctx, info, seen, prompt }) => {
    const { loadSession, sessionCapabilities } = info.agentCapabilities;
    assert.ok(loadSession || sessionCapabilities?.resume);
    await ctx.request(loadSession ? agent.session.load : agent.session.resume, { sessionId: kept, cwd: project, mcpServers: [] });
    seen.text = {};
    assert.equal((await prompt(kept, script.plain)).stopReason, "end_turn");
    assert.match(seen.text[kept], new RegExp(script.said));
  }));

test("sessions side by side, in two projects and in none, for a client that says version 2", () =>
  connect(async ({ seen, open, prompt }) => {
    const ids = [await open(project), await open(project), await open(other), await open(process.cwd())];
    const answers = await Promise.all(ids.map((id) => prompt(id, script.plain)));
    assert.deepEqual(answers.map((a) => a.stopReason), ["end_turn", "end_turn", "end_turn", "end_turn"]);
    for (const id of ids) assert.match(seen.text[id], new RegExp(script.said));
  }, 2));
