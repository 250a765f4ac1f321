package shell

import (
	"slices"
	"strings"
)

// A client is a program that hands statements to a database.
type client struct {
	valued string   // its options that take a value
	text   []string // those whose value is statements
	from   int      // the operand at which statements begin; 0 if none does
}

var clients = map[string]client{
	"psql":  {valued: "cdfhpUvoLPFRT --command --dbname --file --host --port --username --set --output", text: []string{"-c", "--command"}},
	"mysql": {valued: "ehuPDS --execute --host --user --database --port", text: []string{"-e", "--execute"}}, "mariadb": {valued: "ehuPDS --execute --host --user --database --port", text: []string{"-e", "--execute"}},
	"sqlite3": {from: 1}, "sqlite": {from: 1}, "duckdb": {valued: "c", text: []string{"-c", "--command"}, from: 1},
	"mongo": {valued: "upE --eval --host --port", text: []string{"--eval"}}, "mongosh": {valued: "upE --eval --host --port", text: []string{"--eval"}},
	"cqlsh": {valued: "euk --execute", text: []string{"-e", "--execute"}}, "clickhouse-client": {valued: "qhu --query --host", text: []string{"-q", "--query", "--multiquery"}}, "clickhouse": {valued: "qhu --query --host", text: []string{"-q", "--query"}},
	"sqlcmd": {valued: "QqSUPd", text: []string{"-Q", "-q"}}, "bq": {from: 1}, "snowsql": {valued: "qacu --query", text: []string{"-q", "--query"}}, "cockroach": {valued: "eu --execute", text: []string{"-e", "--execute"}},
	"isql": {}, "sqlplus": {from: 1}, "turso": {from: 3}, "usql": {valued: "c", text: []string{"-c"}}, "pgcli": {}, "influx": {valued: "e", text: []string{"-execute", "--execute"}}, "wrangler": {text: []string{"--command"}, valued: "--command"},
	"redis-cli": {}, "mycli": {valued: "e", text: []string{"-e"}}, "litecli": {valued: "e", text: []string{"-e"}}, "trino": {valued: "--execute", text: []string{"--execute"}}, "hive": {valued: "e", text: []string{"-e"}}, "beeline": {valued: "e", text: []string{"-e"}}, "spark-sql": {valued: "e", text: []string{"-e"}},
}

// statements are what takes data away: SQL, and what document stores say instead.
var statements = lazily(`(?is)\b(drop|truncate)\s+(table|database|schema|index|view|column|user|role|keyspace|if\b|materialized|type|function|trigger|sequence|owned|\w+)|` +
	`\bdelete\s+from\b|\bdelete\s+\w+\s+where\b|\balter\s+table\s+\S+\s+drop\b|\bupdate\s+\S+\s+set\b|\bdropDatabase\b|\.(drop|remove|deleteMany|deleteOne|dropIndex|dropIndexes|findOneAndDelete|dropUser|updateMany)\s*\(|` +
	`\b(flushall|flushdb)\b|\bcopy\s+.*\bto\s+program\b|\blo_(export|unlink)\b|\breplace\s+into\b|\bload_extension\b|\bwritefile\s*\(|\binto\s+(outfile|dumpfile)\b|\bpg_terminate_backend\b|\bshutdownServer\b|\breset\s+master\b|\bvacuum\s+into\b`)

// sqlComments stand between words that belong together.
var sqlComments = lazily(`(?s)/\*(?:[^!].*?)??\*/|--[^\n]*`)

// sqlStrings are text, unless a statement is built of them.
var (
	sqlStrings = lazily(`'(?:[^']|'')*'`)
	builds     = lazily(`(?i)\b(execute|do|prepare|exec|eval|from\s+program|format|concat)\b`)
)

// shellEscapes are how the clients hand a line to a shell.
var shellEscapes = lazily(`(?m)(?:^|[;\s])(?:\\!|\.shell|\.system|\\system|system|!)\s+([^\n;]+)|\.once\s+\|\s*([^\n]+)|\.output\s+\|\s*([^\n]+)|\\[go]\s*\|\s*([^\n]+)`)

// database judges the statements that are handed to a database on the command line, or
// in a text that is known.
func (w *walker) database(name string, fs []field, st *state, in flow) {
	c, found := clients[name]
	if !found {
		return
	}
	opts, operands := options(fs[1:], c.valued, false)
	var texts []field
	for _, o := range opts {
		if o.value != nil && slices.Contains(c.text, o.name) {
			texts = append(texts, *o.value)
		}
	}
	if c.from > 0 && len(operands) > c.from {
		texts = append(texts, operands[c.from:]...)
	}
	if name == "sqlite3" {
		for i, f := range fs {
			if f.text == "-cmd" && i+1 < len(fs) {
				texts = append(texts, fs[i+1])
			}
		}
	}
	if in.piped && in.known {
		texts = append(texts, literal(in.text))
	}
	changes := false
	for _, f := range texts {
		changes = w.statement(f, fs, st) || changes || !reads(f.text)
	}
	if changes && len(operands) > 0 && (name == "sqlite3" || name == "sqlite" || name == "duckdb") {
		w.write(operands[0], st, shown(fs))
	}
}

// statement judges one text for a database. It says whether it takes something away.
func (w *walker) statement(f field, fs []field, st *state) bool {
	text := sqlComments().ReplaceAllString(f.text, " ")
	for _, m := range shellEscapes().FindAllStringSubmatch(f.text, 16) {
		w.ask("hands a line to a shell: %s", shown(fs))
		w.nested(strings.Join(m[1:], ""), f, st.child(nil), flow{})
	}
	if !builds().MatchString(text) {
		text = sqlStrings().ReplaceAllString(text, "''")
	}
	if statements().MatchString(text) {
		w.ask("takes data out of a database: %s", shown(fs))
		return true
	}
	return false
}

var readers = []string{"select", "explain", "pragma", "show", "describe", "desc", ".tables", ".schema", ".headers", ".mode", ".dump", ".databases", ".indexes", ".fullschema", "with", "values", "\\d", "\\dt", "\\l"}

// reads says whether statements begin like ones that only read.
func reads(text string) bool {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(strings.ToLower(part))
		if len(words) > 0 && !slices.Contains(readers, words[0]) {
			return false
		}
	}
	return true
}
