import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";

// What the client under test does with a session: here it gathers the agent's text, and answers
// questions with the first option of a kind.
async function session(record, kind, talk) {
  const agent = spawn("perlica", ["agent", "replay", record], { stdio: ["pipe", "pipe", "inherit"] });
  const seen = { text: "", asked: [] };
  const client = acp
    .client({ name: "my-client" })
    .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") seen.text += update.content.text;
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params.toolCall.title);
      const { optionId } = params.options.find((o) => o.kind === kind);
      return { outcome: { outcome: "selected", optionId } };
    });
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  try {
    await client.connectWith(stream, async (ctx) => {
      const { agent } = acp.methods;
      await ctx.request(agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      const { sessionId } = await ctx.request(agent.session.new, { cwd: process.cwd(), mcpServers: [] });
      const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      await talk(prompt, seen, () => ctx.notify(agent.session.cancel, { sessionId }));
    });
  } finally {
    agent.kill();
  }
}

const record = process.env.RECORD ?? "yesterday.frames";

test("a question is answered with yes", () =>
  session(record, "allow_once", async (prompt, seen) => {
    const { stopReason } = await prompt("WRITE out.txt hello");
    assert.equal(stopReason, "end_turn");
    assert.deepEqual(seen.asked, ["Write out.txt"]);
    assert.match(seen.text, /File created successfully/);
  }));

test("another answer than yesterday's is an error", () =>
  session(record, "reject_once", async (prompt) => {
    await assert.rejects(prompt("WRITE out.txt hello"), /in the record it is option allow-once/);
  }));

test("a turn is cancelled where it was", () =>
  session(record, "allow_once", async (prompt, seen, cancel) => {
    const turn = prompt("SLOW 60");
    while (!seen.text.includes("slow10")) await new Promise(setImmediate);
    await cancel();
    assert.equal((await turn).stopReason, "cancelled");
  }));
