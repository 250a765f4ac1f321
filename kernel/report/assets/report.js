"use strict";
// This script verifies the file in the browser, offline. docs/check-report.py is the authority and does the same.
const $ = id => document.getElementById(id);
const words = JSON.parse($("table").textContent), text = words.text, types = words.types;
const utf8 = new TextEncoder();
const sha = async bytes => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
const base = bytes => btoa(String.fromCharCode(...bytes));
function need(ok, why) { if (!ok) throw new Error(why); }
function unbase(s) {
  const bytes = Uint8Array.from(atob(s), c => c.charCodeAt(0));
  need(base(bytes) === s, "base64 that is not canonical");
  return bytes;
}
function concat(...parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  parts.reduce((n, p) => (all.set(p, n), n + p.length), 0);
  return all;
}

// read returns the events of the data, and the size and the root of their tree. A row of two is a subtree without its
// events, any other row is an event.
async function read(data, bad) {
  const rows = await Promise.all(data.events.map((row, i) => row.length === 2 ? null : event(data, row)));
  const stack = [], events = [];
  let size = 0;
  const join = (left, right) => sha(concat([1], left, right));
  for (const [i, row] of data.events.entries()) {
    const e = rows[i];
    let [level, node] = e ? [0, null] : [row[0], unbase(row[1])];
    need(Number.isInteger(level) && level >= 0 && level < 50 && size % 2 ** level === 0, "a subtree is in the wrong place");
    if (e) {
      e.seq = size + 1;
      if (e.bad) bad.push([e.seq, "the payload is not the recorded one"]);
      node = await leaf(e);
      events.push(e);
    }
    size += 2 ** level;
    while (stack.length && stack.at(-1)[0] === level) [level, node] = [level + 1, await join(stack.pop()[1], node)];
    stack.push([level, node]);
  }
  need(stack.length, "there are no events");
  let root = stack.pop()[1];
  while (stack.length) root = await join(stack.pop()[1], root);
  return {events, size, root: base(root)};
}
async function event(data, row) {
  const [stem, ts, id, len, digest, ...payload] = row, header = data.stems[stem];
  const e = {ts, id, len, header, sha: unbase(digest), why: "", p: null};
  [e.type, e.class, e.actor, e.writer, e.context, e.session, e.conversation, e.run, e.trace, e.question, e.input] = header;
  need(payload.length === (Object.hasOwn(types, e.type) ? 1 : 0), "a payload is missing, or there is one too many");
  if (payload.length && payload[0].startsWith("{")) {
    const raw = utf8.encode(payload[0]);
    e.bad = raw.length !== len || hex(await sha(raw)) !== hex(e.sha);
    try { e.p = JSON.parse(payload[0]); } catch { e.bad = true; }
  } else if (payload.length) {
    e.why = payload[0];
    need(Object.hasOwn(text, "why." + e.why), "no reason for a payload that is left out");
  }
  return e;
}
function leaf(e) {
  const fields = ["perlica event 1", String(e.seq), e.id, e.ts, ...e.header, String(e.len)].map(f => utf8.encode(f));
  const parts = [[0]];
  for (const f of [...fields, e.sha]) parts.push([f.length >>> 24, f.length >>> 16 & 255, f.length >>> 8 & 255, f.length & 255], f);
  return sha(concat(...parts));
}

// The page. Its words are in the table.
const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const entity = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\xa0": "&nbsp;"};
const esc = s => String(s).replace(/\p{Cs}/gu, "\ufffd").replace(hidden, c => "\\u{" + c.codePointAt(0).toString(16) + "}")
  .replace(/[&<>\xa0]/g, c => entity[c]);
const tag = (name, s) => `<${name}>${esc(s)}</${name}>\n`;
function cut(s) {
  const all = Array.from(s);
  return all.length <= 200 ? s : all.slice(0, 199).join("") + "…";
}
const micro = v => Math.floor(v * 1e6 + 0.5);
const decimal = n => Math.floor(n / 1e6) + "." + String(n % 1e6).padStart(6, "0");
function scalar(v) {
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (typeof v === "number") {
    if (Math.abs(v) > 2 ** 53) return "a number";
    return v === Math.trunc(v) ? String(v + 0 === 0 ? 0 : v) : v > 0 && v < 1e6 ? decimal(micro(v)) : "a number";
  }
  return typeof v === "string" ? v : "";
}
const dict = v => typeof v === "object" && v !== null && !Array.isArray(v);
const own = (v, name) => Object.hasOwn(v, name) ? v[name] : null;
const member = (v, name) => dict(v) ? scalar(own(v, name)) : "";
const values = (p, path) => path.split(".").reduce((found, name) => found.filter(dict).flatMap(v => own(v, name)), [p]);
const add = (map, name, n) => map.set(name, (map.get(name) ?? 0) + n);

// prunedBy returns the number of an event that records the removal of a payload, or 0. The removals are the events with
// the type log.pruned in the file.
function prunedBy(e, removals) {
  if (e.why !== "pruned" || words.kept.includes(e.type)) return 0;
  return removals.find(r => r.class === "fact" && dict(r.p) && r.seq > e.seq &&
    typeof own(r.p, "until") === "number" && r.p.until >= e.seq &&
    ["session", "run", "class"].every(name => [null, "", e[name]].includes(own(r.p, name))))?.seq ?? 0;
}
function render({events, size, root}, origin, key) {
  const fill = (name, ...args) => text[name].split("{}").reduce((a, b, i) => a + args[i - 1] + b);
  const count = (n, name) => `${n} ${text[name]}` + (n === 1 ? "" : "s");
  const time = e => e.ts.length < 10 || e.ts[0] === "-" ? e.ts :
    new Date(Number(e.ts.slice(0, -9)) * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
  const pairs = list => "<dl>\n" + list.map(([a, b]) => `<dt>${esc(a)}</dt><dd>${esc(b)}</dd>\n`).join("") + "</dl>\n";
  const section = (name, body) => "<section>\n" + tag("h2", text[name]) + body + "</section>\n";
  const removals = events.filter(e => e.type === "log.pruned");
  for (const e of events) e.by = prunedBy(e, removals);
  const gone = e => fill(e.by ? "gonePruned" : "gone", e.by || text["why." + e.why], e.len, hex(e.sha));
  const lines = e => types[e.type].slice(1).flatMap(([label, path, parts, joiner]) => values(e.p, path).map(v => [label, parts ?
    parts.map(([name, before]) => (t => t && before + t)(member(v, name))).filter(Boolean).join(joiner) : scalar(v)]))
    .filter(([, shown]) => shown !== "");
  const block = e => `<article id="e${e.seq}">\n` + tag("h4", types[e.type][0]) + tag("p", fill("event", e.seq, time(e), e.actor)) +
    (e.why ? tag("p", gone(e)) : pairs(lines(e))) + "</article>\n";
  const item = e => `<li><a href="#e${e.seq}">${esc(fill("link", e.seq))}</a>` + esc(fill("line", types[e.type][0],
    cut(e.why ? gone(e) : lines(e).map(([a, b]) => `${a}: ${b}`).join("; ")))) + "</li>\n";
  const items = (list, none) => list.length ? "<ul>\n" + list.join("") + "</ul>\n" : tag("p", text[none]);
  const of = (...names) => events.filter(e => names.includes(e.type));

  const n = events.length, first = events[0], last = events.at(-1), whole = n > 0 && last.seq - first.seq + 1 === n;
  const about = [[text.log, origin], [text.key, key || text.noKey], [text.checkpoint, fill("covers", size, root)]];
  about.push([text.events, !n ? text.empty : whole ? fill("range", first.seq, last.seq, n) : fill("part", n, first.seq, last.seq)]);
  if (n) about.push([text.time, fill("from", time(first), time(last))]);
  let page = section("record", pairs(about));

  const calls = new Map(), open = new Set(), costs = new Map(), before = new Map();
  for (const e of events) {
    const made = calls.get(e.input) ?? [];
    if (e.type === "llm.requested") {
      made.push(0);
      calls.set(e.input, made);
      open.add(e.run);
    } else if (e.type === "llm.single_call.enforced") {
      open.delete(e.run);
      const v = values(e.p, "calls")[0];
      made.splice(-1, 1, typeof v === "number" && v >= 0 && v < 1e9 ? Math.floor(v) : 1);
      calls.set(e.input, made);
    } else if (e.type === "llm.responded") {
      for (const v of values(e.p, "cost")) {
        const unit = member(v, "currency"), amount = dict(v) ? own(v, "amount") : null;
        if (typeof amount !== "number" || !(amount >= 0 && amount < 1e6)) continue;
        const now = micro(amount), account = JSON.stringify([e.session, e.conversation, unit]), old = before.get(account) ?? 0;
        add(costs, unit, now - (e.conversation && now >= old ? old : 0));
        before.set(account, now);
      }
    }
  }
  const inputs = [...calls.keys()];
  const twice = inputs.filter(i => calls.get(i).length > 1 || calls.get(i)[0] > 1);
  const total = [...calls.values()].flat().reduce((a, b) => a + b, open.size);
  const absent = events.filter(e => e.why), uncounted = of("llm.single_call.enforced").filter(e => e.why).length;
  let body = twice.length ? tag("p", fill("twice", twice.join(", "))) :
    uncounted ? tag("p", fill("onceOpen", count(uncounted, "run"))) :
    tag("p", fill(n === size ? "once" : "oncePart", count(inputs.length, "input"), count(total, "call")));
  if (open.size) body += tag("p", fill("open", open.size));
  if (n && first.seq > 1) body += tag("p", fill("before", count(first.seq - 1, "earlier")));
  if (n && last.seq < size) body += tag("p", fill("after", count(size - last.seq, "later")));
  if (absent.length) body += tag("p", fill("absent", count(absent.length, "payload")));
  const left = ["masked", "pruned", "large", "unread"].map(w => [fill("left", text["why." + w]), absent.filter(e => e.why === w && !e.by).length])
    .concat([[text.leftPruned, absent.filter(e => e.by).length]]).filter(([, k]) => k);
  const costless = of("llm.responded").filter(e => e.why).length;
  const money = [...costs].map(([unit, a]) => [text.cost, decimal(a) + " " + unit]);
  page += section("short", body + pairs([...words.counts.map(([label, names]) => [label, of(...names).length]), ...left, ...money]) +
    (money.length && first.seq > 1 ? tag("p", text.costBefore) : "") +
    (costless ? tag("p", fill("costLeft", count(costless, "answer"))) : ""));

  page += section("unknown", items(of("llm.outcome_unknown").flatMap(e => {
    const said = of("run.resolved").filter(r => r.run === e.run).map(item);
    return [item(e), ...(said.length ? said : [tag("li", text.noStatement)])];
  }), "noUnknown"));
  page += section("removed", items(events.filter(e => e.why || ["log.pruned", "log.rewritten"].includes(e.type)).map(item), "noRemoved"));
  const tally = new Map();
  for (const e of of("policy.decided")) {
    const rule = (e.p ? lines(e) : []).slice(0, 4).filter(([a]) => ["effect", "by", "rule", "approval"].includes(a)).map(([, b]) => b);
    add(tally, (rule.length ? rule : [text.unread]).join(" · "), 1);
  }
  page += section("rules", items([...[...tally].map(([rule, k]) => tag("li", fill("times", rule, k))),
    ...of("approval.remembered", "approval.revoked").map(item)], "noRules"));

  const runs = new Map(), other = [], by = new Map();
  for (const e of events) {
    const run = e.run || by.get("question " + e.question) || by.get("input " + e.input) || "";
    for (const kind of ["question", "input"]) if (run && e[kind]) by.set(kind + " " + e[kind], run);
    if (!Object.hasOwn(types, e.type)) continue;
    if (!run) other.push(e);
    else if (runs.has(run)) runs.get(run).push(e);
    else runs.set(run, [e]);
  }
  body = "";
  for (const [i, [run, list]] of [...runs].entries()) {
    const named = list.filter(e => e.type === "inbound.message.received" && e.p).flatMap(lines).find(([a]) => a === "text");
    body += tag("h3", fill("number", i + 1, cut(named ? named[1] : run))) + list.map(block).join("");
  }
  page += section("runs", body || tag("p", text.noRuns));
  return page + (other.length ? section("other", tag("h3", text.others) + other.map(block).join("")) : "");
}

// differ returns the smallest shown elements that differ from the expected ones.
function differ(shown, expected) {
  if (shown.isEqualNode(expected)) return [];
  const a = [...shown.childNodes], b = [...expected.childNodes];
  const alike = shown.cloneNode(false).isEqualNode(expected.cloneNode(false)) && a.length === b.length &&
    a.every((c, i) => c.nodeType === Node.ELEMENT_NODE ? c.nodeName === b[i].nodeName : c.isEqualNode(b[i]));
  return alike ? a.flatMap((c, i) => differ(c, b[i])) : [shown];
}
// verdict shows the result at the top of the page. The places are elements with a fault.
function verdict(kind, sentences, places = []) {
  const make = (name, text) => Object.assign(document.createElement(name), {textContent: text});
  const list = [...sentences, "The authority is: python3 check-report.py FILE KEY"].map(s => make("p", s));
  const articles = new Set(places.map(p => p.closest("article")?.id).filter(Boolean));
  for (const id of [...articles].slice(0, 20)) {
    const link = make("a", "Go to the red event " + id.slice(1));
    link.href = "#" + id;
    list.push(make("p", ""));
    list.at(-1).append(link);
  }
  $("verdict").className = kind;
  $("verdict").replaceChildren(...list);
}

// keyParts returns the name of a log, the id of its key, and the public key. The public key may have the sign +, too.
const keyParts = key => /^([^+]*)\+([^+]*)\+(.*)$/.exec(key)?.slice(1) ?? [];
async function verify(typed) {
  for (const old of document.querySelectorAll(".fault")) old.remove();
  for (const old of document.querySelectorAll("main, main [class]")) old.removeAttribute("class");
  if (!globalThis.crypto?.subtle) return verdict("open", ["Not verified: this browser offers no cryptography for this page."]);
  const data = JSON.parse($("data").textContent), key = typed || data.key, bad = [];
  const one = JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  need(one === $("data").textContent, "its data are not in the one form that they have");
  need(hex(await sha(utf8.encode(shown))) === "AROUND", "the page around the report was changed, perhaps by an extension of this browser");
  const tree = await read(data, bad);
  const note = /^((.+)\n([1-9][0-9]*)\n(.{44})\n)\n\u2014 (\S+) (\S+)\n$/.exec(data.note);
  need(note, "the checkpoint cannot be read");
  const faults = [], expected = document.createElement("template");
  expected.innerHTML = '<main id="main">\n' + render(tree, note[2], data.key) + "</main>";
  const places = differ($("main"), expected.content.firstChild);
  if (places.length) faults.push(`The visible text differs from the events. Red places: ${places.length}.`);
  for (const [seq, why] of bad) {
    faults.push(`Event ${seq}: ${why}.`);
    const place = $("e" + seq);
    if (!place) continue;
    place.prepend(Object.assign(document.createElement("p"), {className: "fault", textContent: why}));
    places.push(place);
  }
  for (const place of places) place.classList.add("changed");
  if (tree.size !== Number(note[3]) || tree.root !== note[4]) faults.push("The events do not lead to the root of the checkpoint.");
  if (faults.length) return verdict("bad", ["NOT VERIFIED: this file was changed.", ...faults], places);
  if (!key) return verdict("open", ["Not verified: the file has no key. Type the key that the owner of the log gave you."]);
  const [name, id, pub] = keyParts(key), raw = unbase(pub ?? ""), sig = unbase(note[6]);
  need(raw.length === 33 && raw[0] === 1 && hex(await sha(concat(utf8.encode(name + "\n"), raw))).startsWith(id), "this is no verifier key");
  let verifier;
  try {
    verifier = await crypto.subtle.importKey("raw", raw.slice(1), "Ed25519", false, ["verify"]);
  } catch {
    return verdict("open", ["Not verified: this browser has no Ed25519. Leaves, root and text agree, but no signature was checked."]);
  }
  const holds = name === note[2] && name === note[5] && sig.length === 68 && hex(sig.slice(0, 4)) === id &&
    await crypto.subtle.verify("Ed25519", verifier, sig.slice(4), utf8.encode(note[1]));
  if (!holds) return verdict("bad", ["NOT VERIFIED: this key did not sign the checkpoint."]);
  for (const a of document.querySelectorAll("article")) a.classList.add("good");
  const absent = tree.events.filter(e => e.why);
  verdict("good", [`Verified here: ${tree.events.length} of the ${tree.size} events of the log, the root, the signature, and each sentence below.`,
    ...absent.length ? [`Payloads that are not in this file: ${absent.length}. Without a verified reason: ${absent.filter(e => !e.by).length}.`] : [],
    typed ? "The key is the one that you typed." : "Compare this key with the one that the owner of the log gave you: " + key]);
}
const check = typed => verify(typed).catch(err => verdict("bad", ["NOT VERIFIED: " + err.message + "."]));
// around returns the whole page without its text, its data and this script. The hash of this script depends on the
// result, so the result has no hash of it.
function around() {
  const copy = document.documentElement.cloneNode(true), policy = copy.querySelector("meta[http-equiv]");
  policy?.setAttribute("content", policy.content.replace(/script-src '[^']*'/, "script-src"));
  for (const part of ["#main", "#data", "script:not([type])"]) copy.querySelector(part)?.replaceChildren();
  return copy.outerHTML + Array.from(document.childNodes, n => n.nodeName).join();
}
let shown;
document.addEventListener("DOMContentLoaded", () => {
  shown = around();
  // The page is made again of its source, because no comparison sees a shadow root.
  document.documentElement.innerHTML = document.documentElement.innerHTML;
  $("ask").hidden = false;
  $("ask").addEventListener("submit", e => {
    e.preventDefault();
    check($("key").value.trim());
  });
  check("");
});
