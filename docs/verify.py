"""Checks an event log of Perlica; log-format.md, all that it knows, explains each step. Exit code 1: it is damaged.
usage: python3 verify.py eventlog.db [--key VERIFIER-KEY]... [--require-signature] [--since CHECKPOINT-FILE]...
With a key, one of them must have signed a checkpoint that holds. Exit code 2: it was asked for something else."""
import hashlib, json, os, re, sqlite3, sys; from base64 import b64decode, b64encode; from urllib.parse import quote
TABLES = dict(absent=3, checkpoints=3, entries=18, names=2, nodes=3, open_runs=2, withheld=2)  # of so many columns
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
def head(note, keys, origins):  # of a checkpoint: size (0: none of this log, or falsely signed), root, if a key signed
    note = re.fullmatch("((.+)\n([1-9][0-9]*)\n(.{43}=)\n)\n((?:\u2014 \\S+ (?:-|[A-Za-z0-9+/]+=*)\n)+)", note)
    sigs = [(name, b64decode(sig)) for name, sig in re.findall("\u2014 (\\S+) (\\S+)\n", note[5])] if note else []
    good = all(signed(keys[name, s[:4]], note[1].encode(), s[4:]) for name, s in sigs if (name, s[:4]) in keys)
    by = any((name, s[:4]) in keys for name, s in sigs)
    return (int(note[3]), note[4].encode(), by) if note and good and note[2] in (origins or note[2]) else (0, "", False)
def anchors(path):  # as notes; the signature of a line that is not signed is "-"
    *lines, last = open(path, encoding="latin-1", newline="").read().split("\n") if os.path.isfile(path) else [""]
    lines += [] if re.fullmatch("[0-9]*( [!-~]*){0,2}( (-|[A-Za-z0-9+/=]{0,92}))?", last.rstrip("\0")) else [last]
    return [re.sub(r"(\S+) (\S+) (\S+) (\S+)", "\\3\n\\1\n\\2\n\n\u2014 \\3 \\4\n", line) for line in lines]
def uuid(b): return re.sub("^(.{8})(.{4})(.{4})(.{4})(?=.{12}$)", r"\1-\2-\3-\4-", b.hex())
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def leaf(row, seq):
    fields = [f if isinstance(f, bytes) else str(f).encode("utf-8", "surrogateescape") for f in row[1:16]]
    return sha(b"\0", *[len(f).to_bytes(4, "big") + f for f in (b"perlica event 1", b"%d" % seq, *fields)])
def moved(seq, row, rows):  # the fault of a header that is not the one that was hashed
    true = next((n for n in range(1, 2 * seq + 1000) if leaf(row, n) == row[16]), seq)
    off, z = next((r[0] - seq for r in rows[seq:] if leaf(r, seq) == r[16]), 0), rows[-1]  # it has moved by off
    k = "inserted" if off and leaf(z, z[0] - off) == z[16] else "edited", "reordered" if off else "deleted", "inserted"
    return min(true, seq), seq, k[(true > seq) - (true < seq)]
def covers(p, e):  # p is what log.pruned says
    n = p.get("until", 0); ok = all(p.get(k, e[i]) == e[i] for k, i in (("session", 8), ("run", 10), ("class", 4)))
    return ok and n in range(e[0], 2**63) and not re.match(r"(log|approval|session)\.|service\.contact_|run\.res", e[3])
def members(payload):  # of a JSON object; of anything else there are none
    try: v = json.loads((payload or b"").decode("utf-8", "replace"), parse_constant=lambda n: 1 // 0, parse_float=str)
    except (ValueError, ArithmeticError, RecursionError): return {}
    return v if isinstance(v, dict) else {}
def breach(row, seen, partial):  # whether an event breaks a rule
    kind, run, asked, of = row[3], row[10], row[12], row[13]
    def again(*mark): return seen.setdefault(mark, row[0]) != row[0]
    def before(*mark): return partial or mark in seen
    bad = [row[4] not in ("fact", "frame")]
    own = [(k, row[i]) for k, i in (("trace", 11), ("session", 8), ("input", 13)) if run and row[i]]
    bad += [seen.setdefault((k, run), v) != v for k, v in own]
    if kind == "acp.request.sent" and members(row[17]).get("method") == "session/prompt":
        called = seen.get(("input", run), "")
        bad += [not run, again("prompt", run), not before("intent", run), called and again("prompt of", called)]
    elif kind == "llm.requested":
        bad += [not run, not of, ("prompt", run) in seen, ("outcome", run) in seen]
        bad += [again("intent", run), again("intent of", of)]
    elif kind in ("llm.responded", "llm.outcome_unknown", "llm.provider_error"):
        bad += [not run, kind != "llm.provider_error" and not before("intent", run), again("outcome", run)]
    elif kind in ("interaction.requested", "interaction.answered", "interaction.lapsed"):
        first = kind == "interaction.requested"; by = members(row[17]).get("by")
        bad += [not asked, seen.setdefault(("asker", asked), run) != run, not first and not before("question", asked)]
        bad += [again("question" if first else "answer", asked)]
        bad += [kind == "interaction.answered" and row[17] is not None and not (isinstance(by, str) and by)]
    elif kind == "interaction.resolved" and ("asker", asked) in seen: bad += [again("resolved", asked)]
    elif kind == "policy.decided": seen["decided", run] = seen.get(("decided", run), 0) + 1
    elif kind in ("acp.reply.sent", "acp.reply.failed") and asked: bad += [not before("answer", asked)]
    elif kind in ("acp.reply.sent", "acp.reply.failed") and run:
        seen["decided", run] = seen.get(("decided", run), 0) - 1; bad += [not partial and seen["decided", run] < 0]
    return any(bad)
def check(db, notes, keys, required):  # of each fault the first and the last seq that it may lie at, and its kind
    size, good, signed_to, roots, faults, doubts, heads, missing, seen = 0, 0, 0, [], [], [], {}, {}, {}
    sql = "SELECT m.name, count(*) FROM sqlite_schema m, pragma_table_info(m.name) WHERE m.name <> 'events' GROUP BY 1"
    if dict(db.execute(sql)) != TABLES: return [(0, 0, "schema")]
    absent, stored, rows, names, nodes, listed, lost = ([*db.execute(f"SELECT * FROM {t} ORDER BY 1")] for t in TABLES)
    text = dict(names).get; rows = [(r[0], uuid(r[1]), r[2], *map(text, r[3:14]), *r[14:]) for r in rows]
    end, nodes, absent = 0, {r[:2]: r[2] for r in nodes}, {r[0]: r[1:] for r in absent}
    odd = [n for n, (k, h) in absent.items() if not (end < n <= 2**60 and 0 <= k < 60 and (n - 1) % 2**k == 0 and
                                                     len(h) == 32 and (end := n + 2**k - 1))]  # no part of a tree
    partial = absent.keys() - odd; absent = {n: absent[n] for n in partial}; faults += [(0, 0, "tree")] * len(odd)
    withheld, stored, ids = dict(lost), [("checkpoint", n, size) for _, size, n in stored], [r[0] for r in stored]
    for kind, note, *stated in stored + notes:
        end, root, by = head(note, keys, ["perlica/" + row[1] for row in rows[:1] if row[0] == 1])
        heads.setdefault(end if stated in ([], [end]) else 0, []).append((root, kind, by))
    if max(ids, default=0) > len(ids): print("warning: checkpoints were removed:", max(ids) - len(ids))
    faults += [(n, n, "deleted") for n in absent if "anchor" in dict(notes) or len({s for *_, s in stored}) > 1]
    def grow(level, hash):
        nonlocal size, good, signed_to, doubts; size += 1 << level
        while roots and roots[-1][0] == level:
            level, hash = level + 1, sha(b"\1", roots.pop()[1], hash)
            there = nodes.pop((level, size - 1 >> level), level % 8 and hash)  # of every eighth level only
            doubts += [(size + 1 - 2**level, size, "tree")] * (there != hash)
        roots.append((level, hash))
        for _, left in roots[-2::-1]: hash = sha(b"\1", left, hash)
        for root, kind, by in heads.pop(size, []):
            if root == b64encode(hash): good, signed_to = size, size if by else signed_to
            else: doubts += [(good + 1, size, kind)]
    def found(*last):  # what is stored is itself to blame if a checkpoint behind it agrees with the events
        behind = lambda first: max(first, good + 1) if first else 0
        blame = [(0, 2**63, k) if end <= good else (behind(first), end, k) for first, end, k in doubts]
        if keys or required: print(f"signed: up to event {signed_to}; behind it, and not covered: {size - signed_to}")
        unsigned = [(0, 2**63, "unsigned")] * bool((keys or required) and not signed_to)
        return faults + [*last] + blame + [(0, 2**63, kind) for _, kind, _ in heads.get(0, [])] + unsigned
    for row in rows:
        while size + 1 in absent: grow(*absent.pop(size + 1))
        seq, payload = row[0], row[17] if row[17] is not None or row[14] else b""
        if seq != size + 1: return found((min(seq, size + 1), seq, "deleted" if size < seq <= 2**60 else "inserted"))
        if leaf(row, seq) != row[16]: return found(moved(seq, row, rows))
        if payload is None: missing.update({} if seq in withheld else {seq: row})
        elif (len(payload), sha(payload)) != row[14:16]: faults.append((seq, seq, "edited"))
        elif row[3] == "log.pruned": missing = {s: r for s, r in missing.items() if not covers(members(payload), r)}
        faults += [(seq, seq + 1.5, "rule")] * bool(breach(row, seen, partial)); grow(0, row[16])
    for seq in sorted(absent): grow(*absent.pop(seq)) if seq == size + 1 else missing.update({size + 1: ()})
    runs = {(r[10], r[0]) for r in rows if r[3] == "llm.requested" and ("outcome", r[10]) not in seen}
    doubts += [(0 if run in dict(listed) else at, 2**63, "tree") for run, at in runs ^ {*listed} if not partial]
    odd = [(k, n) for k, n in nodes if k % 8 or not 0 < k < 60 or not 0 <= n < 2**(60 - k)]
    doubts += [(0, 2**63, "tree")] * len(odd)
    end = max([size, *heads, *((n + 1) << level for level, n in nodes.keys() - odd)])
    print(size, "events,", size - len(rows), "absent; payloads gone:", [r[17] for r in rows if r[14]].count(None))
    return found(*[(seq, seq, "deleted") for seq in missing], *[(size + 1, size + 1, "truncated")] * (end > size))
def main(args):
    path, required, opts = args[0], "--require-signature" in args, [a for a in args[1:] if a != "--require-signature"]
    opts = [*zip(opts[::2], opts[1::2])] if len(opts) % 2 == 0 else [("",)]
    if path.startswith("-") or any(o[0] not in ("--key", "--since") for o in opts): raise IndexError
    try: split = [(v.split("+", 2), b64decode(v.split("+", 2)[2], validate=True)) for o, v in opts if o == "--key"]
    except (ValueError, IndexError): return print("--key: this is no verifier key: NAME+ID+KEY", file=sys.stderr) or 2
    if any(sha(n.encode(), b"\n", k)[:4].hex() != i or len(k) != 33 or k[0] != 1 for (n, i, _), k in split):
        return print("--key: this is no verifier key of a log: its id is another", file=sys.stderr) or 2
    keys = {(n, bytes.fromhex(i)): k[1:] for (n, i, _), k in split}
    for name in [path] + [v for o, v in opts if o == "--since"]:
        if not os.path.isfile(name): return print("this is no file:", name, file=sys.stderr) or 2
    notes = [("checkpoint", open(v, encoding="utf-8").read().strip() + "\n") for o, v in opts if o == "--since"]
    notes += [("anchor", note) for note in anchors(os.path.splitext(path)[0] + ".anchor")]  # first: it is never ahead
    db = sqlite3.connect("file:" + quote(path) + "?mode=ro", uri=True)
    db.text_factory = lambda b: b.decode("utf-8", "surrogateescape")
    version = db.execute("BEGIN").execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
    if version != (1348825708, 3): sys.exit(f"this is no log of schema version 3: {version}")
    try: faults = check(db, notes, keys, required)
    except (sqlite3.Error, TypeError, ValueError, LookupError, OverflowError): faults = [(0, 2**63, "unreadable")]
    try: faults += [(0, 2**63, "unreadable")] * (db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",))
    except sqlite3.Error: faults += [(0, 2**63, "unreadable")]
    first, _, kind = min(faults, key=lambda fault: fault[1], default=(0, 0, ""))
    return print(f"DAMAGED: {kind} at event {first}" if kind else "OK") or int(kind != "")
if __name__ == "__main__":
    try: sys.exit(main(sys.argv[1:]))
    except IndexError: print(__doc__.splitlines()[1], file=sys.stderr); sys.exit(2)
    except (OSError, UnicodeError) as err: print(f"this cannot be read: {err}", file=sys.stderr); sys.exit(2)
    except sqlite3.Error as err: sys.exit(f"this is no log: {err}")
