#!/usr/bin/env python3
"""Check a file of 'perlica report' without Perlica: python3 check-report.py FILE KEY

The standard library is enough. The script computes each leaf, the root and the signature (docs/log-format.md), and
writes the visible page again from the verified events. Each byte of the file must be as expected.
"""
import datetime, hashlib, json, os, re, sys
from base64 import b64decode, b64encode

# SHELL is the SHA-256 of the unchanging parts of the file: its head, its table of words and its script.
SHELL = "916f1052b45057cbea837f72d99210ec88c8d389df0b4149dd24414eb6e71b38"
P, ORDER, D = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493, -121665 * pow(121666, -1, 2**255 - 19)

def plus(a, b):  # points of Ed25519 (RFC 8032) are X, Y, Z, XY/Z
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    return (f - e) * (h - g) % P, (h + g) * (f + e) % P, (h - g) * (h + g) % P, (f - e) * (f + e) % P
def times(n, a): return plus(times(n // 2, plus(a, a)), a if n % 2 else (0, 1, 1, 0)) if n else (0, 1, 1, 0)
def point(b, flip=0):
    y = int.from_bytes(b, "little") & (2**255 - 1); square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P); x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    return (x := x if x & 1 == b[31] >> 7 ^ flip else P - x), y, 1, x * y % P
def signed(key, text, sig):
    k, s = (int.from_bytes(b, "little") for b in (hashlib.sha512(sig[:32] + key + text).digest(), sig[32:]))
    x, y, z, _ = plus(times(s, point(bytes([88] + [102] * 31))), times(k % ORDER, point(key, 1)))
    return s < ORDER and (y * (i := pow(z, -1, P)) % P | (x * i % P & 1) << 255).to_bytes(32, "little") == sig[:32]
def need(ok, why):
    if not ok: raise ValueError(why)
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def unbase(text):
    data = b64decode(text, validate=True)
    need(b64encode(data).decode() == text, "base64 that is not canonical")
    return data

# The events. A row of two is a subtree without its events, any other row is an event.
def read(data, words):
    size, stack, events, last = 0, [], [], ""
    for row in data["events"]:
        level, node = (row[0], unbase(row[1])) if len(row) == 2 else (0, None)
        need(0 <= level < 60 and size % 2**level == 0, "a subtree in the wrong place")
        if node is None:
            stem, ts, ident, length, digest, *payload = row
            e = dict(zip("type class actor writer context session conversation run trace question input".split(), data["stems"][stem]))
            e.update(seq=size + 1, ts=ts, len=length, sha=unbase(digest), why="", p=None)
            fields = "perlica event 1", size + 1, ident, ts, *data["stems"][stem], length
            fields = [str(f).encode() for f in fields] + [e["sha"]]
            node = sha(b"\0", *[len(f).to_bytes(4, "big") + f for f in fields])
            need(len(payload) == (e["type"] in words["types"]), "a payload is missing, or there is one too many")
            if payload and payload[0][:1] == "{":
                raw = payload[0].encode()
                need((len(raw), sha(raw)) == (length, e["sha"]), f"the payload of event {size + 1} is not the recorded one")
                e["p"] = json.loads(raw, parse_int=float, parse_constant=lambda name: 1 // 0)
            elif payload:
                e["why"] = payload[0]
                need("why." + e["why"] in words["text"], "no reason for a payload that is left out")
            events.append(e)
        size += 2**level
        while stack and stack[-1][0] == level: level, node = level + 1, sha(b"\1", stack.pop()[1], node)
        stack.append((level, node))
    root = stack.pop()[1]
    while stack: root = sha(b"\1", stack.pop()[1], root)
    return events, size, b64encode(root).decode()

# The page. Its words are in the table of the shell.
HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
def esc(text):
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    text = HIDDEN.sub(lambda m: "\\u{%x}" % ord(m[0]), text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", "&nbsp;")
def tag(name, text): return f"<{name}>{esc(text)}</{name}>\n"
def cut(text): return text if len(text) <= 200 else text[:199] + "…"
def micro(v): return int(v * 1e6 + 0.5)
def decimal(n): return f"{n // 10**6}.{n % 10**6:06}"
def scalar(v):  # of a value in a payload; "" means that there is nothing to show
    if isinstance(v, bool): return "yes" if v else "no"
    if isinstance(v, float): return "a number" if abs(v) > 2**53 else str(int(v)) if v == int(v) else decimal(micro(v)) if 0 < v < 1e6 else "a number"
    return v if isinstance(v, str) else ""
def values(p, path):
    found = [p]
    for name in path.split("."):
        found = [v.get(name) for v in found if isinstance(v, dict)]
        found = [w for v in found for w in (v if isinstance(v, list) else [v])]
    return found
def member(v, name): return scalar(v.get(name)) if isinstance(v, dict) else ""
def pruned_by(e, events, words):  # the number of an event in the file that records the removal of the payload of e
    if e["why"] == "pruned" and e["type"] not in words["kept"]:
        for r in events:
            if r["type"] == "log.pruned" and r["class"] == "fact" and r["p"] and r["seq"] > e["seq"]:
                until = r["p"].get("until")
                if isinstance(until, float) and until >= e["seq"] and all(r["p"].get(k) in (None, "", e[k]) for k in ("session", "run", "class")):
                    return r["seq"]
    return 0
def render(events, size, root, origin, key, words):
    text, types = words["text"], words["types"]
    for e in events: e["by"] = pruned_by(e, events, words)
    def fill(name, *args):
        head, *rest = text[name].split("{}")
        return head + "".join(str(a) + r for a, r in zip(args, rest))
    def count(n, name): return f"{n} {text[name]}" + ("s" if n != 1 else "")
    def time(e): return e["ts"] if len(e["ts"]) < 10 or e["ts"][0] == "-" else str(datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(e["ts"][:-9]))) + " UTC"
    def pairs(list): return "<dl>\n" + "".join(f"<dt>{esc(a)}</dt><dd>{esc(b)}</dd>\n" for a, b in list) + "</dl>\n"
    def section(name, body): return "<section>\n" + tag("h2", text[name]) + body + "</section>\n"
    def gone(e): return fill("gonePruned" if e["by"] else "gone", e["by"] or text["why." + e["why"]], e["len"], e["sha"].hex())
    def lines(e):
        found = []
        for label, path, *parts in types[e["type"]][1:]:
            for v in values(e["p"], path):
                shown = scalar(v) if not parts else parts[1].join(before + t for name, before in parts[0] if (t := member(v, name)))
                found += [(label, shown)] * (shown != "")
        return found
    def block(e):
        head = fill("event", e["seq"], time(e), e["actor"])
        return f'<article id="e{e["seq"]}">\n' + tag("h4", types[e["type"]][0]) + tag("p", head) + (tag("p", gone(e)) if e["why"] else pairs(lines(e))) + "</article>\n"
    def item(e):
        about = gone(e) if e["why"] else "; ".join(f"{a}: {b}" for a, b in lines(e))
        return f'<li><a href="#e{e["seq"]}">{esc(fill("link", e["seq"]))}</a>{esc(fill("line", types[e["type"]][0], cut(about)))}</li>\n'
    def items(list, none): return "<ul>\n" + "".join(list) + "</ul>\n" if list else tag("p", text[none])
    def of(*names): return [e for e in events if e["type"] in names]

    n, whole = len(events), events and events[-1]["seq"] - events[0]["seq"] + 1 == len(events)
    about = [(text["log"], origin), (text["key"], key or text["noKey"]), (text["checkpoint"], fill("covers", size, root))]
    if n:
        first, last = events[0], events[-1]
        about.append((text["events"], fill("range", first["seq"], last["seq"], n) if whole else fill("part", n, first["seq"], last["seq"])))
        about.append((text["time"], fill("from", time(first), time(last))))
    else:
        about.append((text["events"], text["empty"]))
    page = section("record", pairs(about))

    calls, open, costs, before = {}, {}, {}, {}
    for e in events:
        if e["type"] == "llm.requested":
            calls.setdefault(e["input"], []).append(0)
            open[e["run"]] = True
        elif e["type"] == "llm.single_call.enforced":
            open.pop(e["run"], None)
            made = (values(e["p"], "calls") or [0])[0]
            calls.setdefault(e["input"], [])[-1:] = [int(made) if isinstance(made, float) and 0 <= made < 1e9 else 1]
        elif e["type"] == "llm.responded":
            for v in values(e["p"], "cost"):
                unit, amount = member(v, "currency"), v.get("amount") if isinstance(v, dict) else None
                if isinstance(amount, float) and 0 <= amount < 1e6:
                    amount, account = micro(amount), (e["session"], e["conversation"], unit)
                    old = before.get(account, 0)
                    costs[unit] = costs.get(unit, 0) + amount - (old if e["conversation"] and amount >= old else 0)
                    before[account] = amount
    inputs = [i for i, made in calls.items() if made]
    twice = [i for i in inputs if len(calls[i]) > 1 or calls[i][0] > 1]
    total = sum(sum(made) for made in calls.values()) + len(open)
    if twice: body = tag("p", fill("twice", ", ".join(twice)))
    elif missing := sum(e["why"] != "" for e in of("llm.single_call.enforced")): body = tag("p", fill("onceOpen", count(missing, "run")))
    else: body = tag("p", fill("once" if n == size else "oncePart", count(len(inputs), "input"), count(total, "call")))
    if open: body += tag("p", fill("open", len(open)))
    if n and events[0]["seq"] > 1: body += tag("p", fill("before", count(events[0]["seq"] - 1, "earlier")))
    if n and events[-1]["seq"] < size: body += tag("p", fill("after", count(size - events[-1]["seq"], "later")))
    absent = [e for e in events if e["why"]]
    if absent: body += tag("p", fill("absent", count(len(absent), "payload")))
    left = [(fill("left", text["why." + w]), k) for w in ("masked", "pruned", "large", "unread") if (k := sum(e["why"] == w and not e["by"] for e in events))]
    left += [(text["leftPruned"], k) for k in [sum(e["by"] > 0 for e in events)] if k]
    money = [(text["cost"], decimal(a) + " " + unit) for unit, a in costs.items()]
    page += section("short", body + pairs([(label, str(len(of(*names)))) for label, names in words["counts"]] + [(a, str(k)) for a, k in left] + money)
        + (tag("p", text["costBefore"]) if money and events[0]["seq"] > 1 else "")
        + (tag("p", fill("costLeft", count(k, "answer"))) if (k := sum(e["why"] != "" for e in of("llm.responded"))) else ""))

    said = [[item(e), *([item(r) for r in of("run.resolved") if r["run"] == e["run"]] or [tag("li", text["noStatement"])])] for e in of("llm.outcome_unknown")]
    page += section("unknown", items([i for list in said for i in list], "noUnknown"))
    page += section("removed", items([item(e) for e in events if e["why"] or e["type"] in ("log.pruned", "log.rewritten")], "noRemoved"))
    tally = {}
    for e in of("policy.decided"):
        rule = [b for a, b in (lines(e) if e["p"] else [])[:4] if a in ("effect", "by", "rule", "approval")] or [text["unread"]]
        tally[" · ".join(rule)] = tally.get(" · ".join(rule), 0) + 1
    ruled = [tag("li", fill("times", rule, k)) for rule, k in tally.items()]
    page += section("rules", items(ruled + [item(e) for e in of("approval.remembered", "approval.revoked")], "noRules"))

    runs, other, by = {}, [], {}
    for e in events:
        run = e["run"] or by.get(("question", e["question"])) or by.get(("input", e["input"])) or ""
        for kind in "question", "input":
            if run and e[kind]: by[kind, e[kind]] = run
        if e["type"] in types: (runs.setdefault(run, []) if run else other).append(e)
    body = ""
    for i, (run, list) in enumerate(runs.items()):
        name = next((b for e in list if e["type"] == "inbound.message.received" and e["p"] for a, b in lines(e) if a == "text"), "") or run
        body += tag("h3", fill("number", i + 1, cut(name))) + "".join(map(block, list))
    page += section("runs", body or tag("p", text["noRuns"]))
    return page + (section("other", tag("h3", text["others"]) + "".join(map(block, other))) if other else "")

def check(file, key):  # of the bytes of a file; returns the name of the log, the events in the file, and the size of the log
    pre, rest = file.decode().split('<main id="main">\n', 1)
    body, rest = rest.split("</main>", 1)
    mid, rest = rest.split('id="data">', 1)
    data, post = rest.split("</script>", 1)
    shell = hashlib.sha256("\0".join((pre, mid, post)).encode()).hexdigest()
    need(shell == SHELL, "its script or its words were changed, or another version of Perlica wrote it (take check-report.py of that version)")
    words, d = json.loads(mid.split('id="table">')[1].split("</script>")[0]), json.loads(data)
    text = json.dumps(d, ensure_ascii=False, separators=(",", ":"))
    for c in "<>&\u2028\u2029": text = text.replace(c, "\\u%04x" % ord(c))
    need(text == data, "its data are not in the one form that they have")
    need(d["key"] in ("", key), "it names another key")
    events, size, root = read(d, words)
    note = re.fullmatch("((.+)\n([1-9][0-9]*)\n(.{44})\n)\n\u2014 (\\S+) (\\S+)\n", d["note"])
    need(note and (int(note[3]), note[4]) == (size, root), "its events do not lead to the root of its checkpoint")
    page = render(events, size, root, note[2], d["key"], words) + "\0"
    at = next((i for i, (a, b) in enumerate(zip(page, body + "\0")) if a != b), len(page) - 1)
    need(page == body + "\0", f"the visible text is not that of the events: {body[max(at - 20, 0):at + 60]!r}")
    name, ident, public = key.split("+", 2)
    public, sig = unbase(public), unbase(note[6])
    need(len(public) == 33 and public[0] == 1 and sha(name.encode(), b"\n", public)[:4].hex() == ident, "KEY is no verifier key of a log")
    need(name == note[2] == note[5] and len(sig) == 68 and sig[:4].hex() == ident, "another key signed it")
    need(signed(public[1:], note[1].encode(), sig[4:]), "the signature is false")
    return name, events, size

def main(path, key):
    try: name, events, size = check(open(path, "rb").read(), key)
    except Exception as err: sys.exit(f"NOT VERIFIED: {err or type(err).__name__}")
    print(f"VERIFIED: {len(events)} of the {size} events of the log {name}, and each visible word that follows from them")
    absent = [e for e in events if e["why"]]
    if absent: print(f"Payloads that are not in this file: {len(absent)}. Without a verified reason: {sum(not e['by'] for e in absent)}.")

if __name__ == "__main__":
    if len(sys.argv) != 3: print(__doc__.splitlines()[0], file=sys.stderr); sys.exit(2)
    if not os.path.isfile(sys.argv[1]): print("there is no file", sys.argv[1], file=sys.stderr); sys.exit(2)
    main(*sys.argv[1:])
