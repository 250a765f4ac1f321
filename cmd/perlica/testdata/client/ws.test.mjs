// A client written with the TypeScript SDK, over a WebSocket to the server of `perlica web`. URL is
// where, TOKEN a token, PROJECT a directory.
import assert from "node:assert/strict";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import WebSocket from "ws";

const { agent, client } = acp.methods;

test("a turn, a permission, a cancel", async () => {
  const seen = { text: "", asked: 0 };
  const stream = createWebSocketStream(process.env.URL, { headers: { Authorization: `Bearer ${process.env.TOKEN}` }, WebSocket });
  await acp
    .client({ name: "typescript" })
    .onNotification(client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") seen.text += update.content.text;
    })
    .onRequest(client.session.requestPermission, ({ params }) => {
      seen.asked++;
      return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
    })
    .connectWith(stream, async (ctx) => {
      const info = await ctx.request(agent.initialize, { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: "typescript", version: "1" } });
      assert.equal(info.protocolVersion, 1);
      const { sessionId } = await ctx.request(agent.session.new, { cwd: process.env.PROJECT, mcpServers: [] });
      const prompt = (text) => ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      assert.equal((await prompt("@say Hello")).stopReason, "end_turn");
      assert.match(seen.text, /Hello/);
      assert.equal((await prompt("@ask execute Build command=make")).stopReason, "end_turn");
      assert.equal(seen.asked, 1);
      const turn = prompt("@say begun\n@hang");
      while (!seen.text.includes("begun")) await new Promise(setImmediate);
      await ctx.notify(agent.session.cancel, { sessionId });
      assert.equal((await turn).stopReason, "cancelled");
      await assert.rejects(ctx.request(agent.session.setMode, { sessionId, modeId: "auto" }), /from outside/);
    });
});
