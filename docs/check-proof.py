#!/usr/bin/env python3
"""Check a proof of 'perlica log prove' without Perlica: python3 check-proof.py FILE KEY

Written from docs/evidence.md and docs/log.md with the standard library; openssl (1.1.1 or newer)
checks the signature.
"""
import base64, datetime, hashlib, json, os, re, subprocess, sys, tempfile

def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()

def once(pairs):  # an object's members, none of them twice
    assert len({k for k, _ in pairs}) == len(pairs), "a member of the event is there twice"
    return dict(pairs)

def refuse(why, code):
    print(why, file=sys.stderr)
    sys.exit(code)

def failed(kind, err, trace):  # whatever does not hold is one line
    refuse(f"NOT PROVEN: {err or kind.__name__}", 1)

sys.excepthook = failed
if len(sys.argv) != 3:
    refuse("usage: python3 check-proof.py FILE KEY", 2)
if not os.path.isfile(sys.argv[1]):
    refuse(f"there is no file {sys.argv[1]}", 2)
if len(sys.argv[2].split("+", 2)) != 3:
    refuse("KEY is a verifier key, NAME+ID+KEY", 2)
text = open(sys.argv[1], encoding="utf-8").read().strip(" \t\n") + "\n"  # line ends may be others
assert text.startswith("c2sp.org/tlog-proof@v1\n"), "this is no proof of an event"
held = []  # a file proves one event, or a question: the proofs of its request, its end and the reply, one after the other
events = []
for text in re.split("\n\n(?=c2sp.org/tlog-proof@v1\n)", text):
    text = text.strip("\n") + "\n"
    assert text.count("\n\n") == 2, "there is more, or less, than a proof"
    proof, body, signatures = text.split("\n\n")
    assert re.fullmatch("(\u2014 \\S+ [A-Za-z0-9+/]+=*\n)+", signatures), "there is more behind the checkpoint than signatures"
    head, extra, index, *path = proof.split("\n")
    origin, size, root = body.split("\n")
    assert re.fullmatch("index (0|[1-9][0-9]*)", index) and re.fullmatch("[1-9][0-9]*", size), "index or size"
    size, index = int(size), int(index[6:])

    # The event: its payload has the hash that its header names.
    assert extra.startswith("extra "), "there is no event"
    e = once(json.loads(base64.b64decode(extra[6:], validate=True), object_pairs_hook=list))  # its own alone
    known = """seq event_id ts type class actor writer context_id session_id conversation_id run_id trace_id interaction_id
        input_id payload_len payload_sha256 leaf payload payload_base64 line line_base64 withheld""".split()
    assert not set(e) - set(known), "the event has a member that is not known"
    if "withheld" in e:
        payload = None
        held.append("the payload is withheld: " + e["withheld"])
    elif "payload" in e:  # these bytes are the JSON as it stands
        raw = base64.b64decode(extra[6:]).decode()
        payload = raw[raw.index('"leaf":"'):].split(',"payload":', 1)[1][:-1].encode()
    elif "line" in e:
        payload = e["line"].encode()
    else:  # an empty payload has no member at all
        payload = base64.b64decode(e.get("line_base64", e.get("payload_base64", "")))
    assert payload is None or (len(payload), hashlib.sha256(payload).hexdigest()) == (e["payload_len"], e["payload_sha256"]), "payload"

    # The leaf: the hash of the header.
    seconds, _, fraction = e["ts"].rstrip("Z").partition(".")
    at = datetime.datetime.fromisoformat(seconds + "+00:00") - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    ns = (at.days * 86400 + at.seconds) * 10**9 + int(fraction.ljust(9, "0"))
    fields = ["perlica event 1", e["seq"], e["event_id"], ns, e["type"], e["class"], e["actor"], e["writer"], e["context_id"]]
    fields += [e.get(k, "") for k in ("session_id", "conversation_id", "run_id", "trace_id", "interaction_id", "input_id")]
    fields = [str(f).encode() for f in fields + [e["payload_len"]]] + [bytes.fromhex(e["payload_sha256"])]
    h = sha(b"\x00", *(len(f).to_bytes(4, "big") + f for f in fields))
    assert e["seq"] == index + 1 and index < size, "index"

    # The root: RFC 9162, section 2.1.3.2.
    n, last = index, size - 1
    for sibling in map(base64.b64decode, path):
        assert last > 0, "too many hashes"
        if n & 1 or n == last:
            h = sha(b"\x01", sibling, h)
            while not n & 1 and n:
                n, last = n >> 1, last >> 1
        else:
            h = sha(b"\x01", h, sibling)
        n, last = n >> 1, last >> 1
    assert last == 0 and h == base64.b64decode(root), "the event is not in the tree"

    # The signature: Ed25519 over the checkpoint's three lines.
    name, _, key = sys.argv[2].split("+", 2)
    key = base64.b64decode(key)
    key_id = sha(name.encode(), b"\n", key)[:4]
    assert key[0] == 1 and name == origin, "another log's key"
    sigs = [base64.b64decode(l.rsplit(" ", 1)[1]) for l in signatures.splitlines() if l.startswith("— " + name + " ")]
    sig = next((s for s in sigs if s[:4] == key_id), None)
    assert sig, "another key signed: " + ", ".join(f"{name}+{s[:4].hex()}+…" for s in sigs)
    with tempfile.TemporaryDirectory() as d:
        for file, data in ("key", bytes.fromhex("302a300506032b6570032100") + key[1:]), ("msg", (body + "\n").encode()), ("sig", sig[4:]):
            open(f"{d}/{file}", "wb").write(data)
        subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", d + "/key", "-rawin", "-in", d + "/msg", "-sigfile", d + "/sig"],
                       check=True, stdout=subprocess.DEVNULL)
    events.append((e["type"], e.get("interaction_id"), e["seq"]))
    held.append(f"event {e['seq']} is on the log {origin}, among its first {size}")

if len(events) > 1:
    steps = "interaction\\.requested", "interaction\\.(answered|lapsed)", "acp\\.reply\\.(sent|failed)"
    assert len(events) == len(steps) and all(re.fullmatch(s, e[0]) for s, e in zip(steps, events)), "this is no whole question"
    assert events[0][1] and len({e[1] for e in events}) == 1, "its events are of several questions"
    assert events[0][2] < events[1][2] < events[2][2], "the order"
print("\n".join(held))
