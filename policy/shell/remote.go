package shell

import (
	"path"
	"slices"
	"strings"
)

// losses looks up the commands that remove something beyond the working tree: in clouds, clusters, containers,
// databases, registries and backups. Each entry is a list of words that follow each other among the operands; * in a
// word stands for any letters. A command without words always removes something.
var losses = table("losses", func(said string) [][]string {
	var phrases [][]string
	for phrase := range strings.SplitSeq(said, ",") {
		phrases = append(phrases, strings.Fields(phrase))
	}
	return phrases
})

// judgeRemoteLoss asks about a command that removes something beyond the tree.
func (w *walker) judgeRemoteLoss(name string, fs []field) {
	phrases, found := losses(name)
	words := make([]string, 0, len(fs))
	for _, f := range fs[1:min(len(fs), 200)] {
		words = append(words, f.text)
	}
	if !found || rehearsed(fs) {
		return
	}
	fold := name == "redis-cli" || name == "valkey-cli"
	if slices.ContainsFunc(phrases, func(phrase []string) bool { return inOrder(phrase, words, fold) }) {
		w.askBecause(whyForGood, shown(fs))
	}
}

// looksInside reports whether a cluster client only shows files or the state of a container: exec NAME -- cat FILE.
func looksInside(name string, fs []field) bool {
	at := slices.IndexFunc(fs, func(f field) bool { return f.text == "--" })
	shows := strings.Fields("cat ls head tail grep ps df du id whoami hostname date pwd stat wc uname")
	return slices.Contains([]string{"kubectl", "k", "oc", "kubecolor"}, name) && among(fs, "exec") &&
		at > 0 && at+1 < len(fs) && slices.Contains(shows, fs[at+1].text)
}

// rehearsed reports whether the words ask only for a dry run or for help.
func rehearsed(fs []field) bool {
	return fs[len(fs)-1].text == "-h" || slices.ContainsFunc(fs[1:],
		func(f field) bool { return listed("rehearsals", f.text) })
}

// matchesPhrase reports whether a part of the table has a phrase that matches these words of a program.
func matchesPhrase(part, name string, fs []field) bool {
	said, found := rows()[part][name]
	if !found {
		return false
	}
	words := make([]string, 0, len(fs))
	for _, f := range fs[1:min(len(fs), 200)] {
		words = append(words, f.text)
	}
	return slices.ContainsFunc(strings.Split(said, ","),
		func(phrase string) bool { return inOrder(strings.Fields(phrase), words, false) })
}

// inOrder reports whether the words of a phrase occur among words in this order. Options and their values may stand
// between them. The first word must be among the first operands, because a later argument is not a subcommand.
func inOrder(phrase, words []string, fold bool) bool {
	next, operands := 0, 0
	if len(phrase) == 0 {
		return true
	}
	phrase = slices.Clone(phrase)
	for i := range phrase { // * matches a slash, too
		phrase[i] = strings.ReplaceAll(phrase[i], "/", "\x01")
	}
	for _, word := range words {
		if fold {
			word = strings.ToLower(word)
		}
		if ok, err := path.Match(phrase[next], strings.ReplaceAll(word, "/", "\x01")); ok && err == nil {
			if next++; next == len(phrase) {
				return true
			}
			continue
		}
		if !strings.HasPrefix(word, "-") {
			if operands++; operands > 6 && !strings.HasPrefix(phrase[next], "-") {
				return false
			}
		}
	}
	return false
}

// client is the row of a program that sends statements to a database.
type client struct {
	valued string   // options that take a value
	text   []string // options whose value is a statement
	from   int      // index of the first operand with statements; 0 means none
}

var clients = table("clients", func(said string) client {
	m := members(said, "valued", "text", "from")
	return client{valued: strings.Join(m["valued"], " "), text: m["text"], from: figure(m["from"])}
})

// statements matches statements that remove data, in SQL and in the languages of document stores.
var statements = lazily(`(?is)\b(drop|truncate)\s+(table|database|schema|index|view|column|user|role|keyspace|if\b|` +
	`materialized|type|function|trigger|sequence|owned|\w+)|` +
	`\bdelete\s+from\b|\bdelete\s+\w+\s+where\b|\balter\s+table\s+\S+\s+drop\b|\bupdate\s+\S+\s+set\b|` +
	`\bdropDatabase\b|\.(drop|remove|deleteMany|deleteOne|dropIndex|dropIndexes|findOneAndDelete|dropUser|` +
	`updateMany)\s*\(|` +
	`\b(flushall|flushdb)\b|\bcopy\s+.*\b(to|from)\s+program\b|(^|\n)\s*\.load\b|(^|[\n;])\s*(source|\\i|\\ir|\\\.|` +
	`\.read)\s+['"]?[/~]|(^|;)\s*install\s+\w+|\bload\s+data\b|\bcreate\s+(or\s+replace\s+)?(extension|user|` +
	`role)\b|\balter\s+(system|user|role)\b|\bgrant\s+.*\bto\b|\blo_(export|unlink)\b|\breplace\s+into\b|` +
	`\bload_extension\b|\bwritefile\s*\(|\binto\s+(outfile|dumpfile)\b|\bpg_terminate_backend\b|` +
	`\bshutdownServer\b|\breset\s+master\b|\bvacuum\s+into\b`)

// sqlComments matches comments, which may stand between words that belong together.
var sqlComments = lazily(`(?s)/\*(?:[^!].*?)??\*/|--[^\n]*`)

// sqlStrings matches strings, which are only text unless builds matches: a statement may be built from them.
var (
	sqlStrings = lazily(`'(?:[^']|'')*'`)
	builds     = lazily(`(?i)\b(execute|do|prepare|exec|eval|from\s+program|format|concat)\b`)
)

// shellEscapes matches the lines that database clients pass to a shell.
var shellEscapes = lazily(`(?m)(?:^|[;\s])(?:\\!|\.shell|\.system|\\system|system|!)\s+([^\n;]+)|\.(?:once|output|` +
	`read|import)\s+['"]?\|\s*([^\n]+)|\\[go]\s*\|\s*([^\n]+)`)

// statementFiles matches the files that special lines of database clients write.
var statementFiles = lazily(`(?im)(?:^\s*\.(?:output|once|backup|save|log|trace)(?:\s+main)?|\\o|\\copy\b.*?\bto|` +
	`\bcopy\b.*?\bto)\s+'?([/~.][^\s';]*)`)

// judgeDatabase judges the statements for a database on the command line or in a known text.
func (w *walker) judgeDatabase(name string, fs []field, st *state, in flow) {
	c, found := clients(name)
	if !found {
		return
	}
	opts, operands := options(fs[1:], c.valued, false)
	texts := values(opts, c.text...)
	if c.from > 0 && len(operands) > c.from {
		texts = append(texts, operands[c.from:]...)
	}
	if name == "sqlite3" {
		texts = append(texts, valuesOf(fs, []string{"-cmd"})...)
	}
	if in.piped && in.known {
		texts = append(texts, literal(in.text))
	}
	changes := false
	for _, f := range texts {
		changes = w.judgeStatement(f, fs, st) || changes || !reads(f.text)
	}
	if changes && len(operands) > 0 && (name == "sqlite3" || name == "sqlite" || name == "duckdb") {
		w.judgeWrite(operands[0], st, shown(fs))
	}
}

// judgeStatement judges one text for a database. It reports whether the text removes data.
func (w *walker) judgeStatement(f field, fs []field, st *state) bool {
	text := sqlComments().ReplaceAllString(f.text, " ")
	for _, m := range shellEscapes().FindAllStringSubmatch(f.text, 16) {
		w.askBecause(whyShellLine, shown(fs))
		w.walkNested(strings.Join(m[1:], ""), f, st.child(nil), flow{})
	}
	for _, m := range statementFiles().FindAllStringSubmatch(f.text, 16) {
		w.judgeWrite(*part(f, m[1]), st, deedWrites.With(m[1]))
	}
	if !builds().MatchString(text) {
		text = sqlStrings().ReplaceAllString(text, "''")
	}
	if statements().MatchString(text) {
		w.askBecause(whyDatabase, shown(fs))
		return true
	}
	return false
}

var readers = []string{"select", "explain", "pragma", "show", "describe", "desc", ".tables", ".schema", ".headers",
	".mode", ".dump", ".databases", ".indexes", ".fullschema", "with", "values", "\\d", "\\dt", "\\l"}

// reads reports whether all statements begin with a word that only reads.
func reads(text string) bool {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(strings.ToLower(part))
		if len(words) > 0 && !slices.Contains(readers, words[0]) {
			return false
		}
	}
	return true
}
