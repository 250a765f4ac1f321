// Each record of a folder, replayed to a client that says what the client of the record said: the
// updates that its handlers get, and the answers, are those of the record.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";

const folder = process.env.RECORDS;
const updateOf = ({ sessionId, update }) => [sessionId, update.sessionUpdate, update.content?.text ?? update.toolCallId];
const answerOf = ({ result, error }) => error?.code ?? result.stopReason ?? result.sessionId ?? "result";

function read(file) {
  const [head, ...lines] = readFileSync(join(folder, file), "utf8").trimEnd().split("\n");
  assert.deepEqual(JSON.parse(head), { perlica_frames: 1 });
  return lines.map((l) => JSON.parse(l)).map(({ from, line }) => ({ from, ...JSON.parse(line) }));
}

for (const file of readdirSync(folder)) {
  test(file, { timeout: 60_000 }, async () => {
    const frames = read(file);
    const updates = [];
    const answers = frames.filter((f) => f.from === "client" && !f.method && f.result); // to questions
    const agent = spawn("perlica", ["agent", "replay", join(folder, file)], { stdio: ["pipe", "pipe", "inherit"] });
    const client = acp
      .client({ name: "corpus" })
      .onNotification(acp.methods.client.session.update, ({ params }) => void updates.push(updateOf(params)))
      .onRequest(acp.methods.client.session.requestPermission, () => answers.shift().result);
    await client.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
      const waiting = new Map();
      const recorded = [];
      for (const f of frames) {
        if (f.from === "agent" && f.method === "session/update") recorded.push(updateOf(f.params));
        if (f.from === "client" && f.method) {
          while (updates.length < recorded.length) await new Promise(setImmediate);
        }
        if (f.from === "client" && f.method && f.id === undefined) {
          await ctx.notify(f.method, f.params);
        } else if (f.from === "client" && f.method) {
          waiting.set(f.id, ctx.request(f.method, f.params).then((result) => ({ result }), (error) => ({ error })));
        } else if (f.from === "agent" && !f.method) {
          assert.deepEqual(answerOf(await waiting.get(f.id)), answerOf(f));
        }
      }
      assert.deepEqual(updates, recorded);
      assert.deepEqual(answers, []);
    });
    agent.kill();
  });
}
