package shell

import (
	"path"
	"slices"
	"strings"
)

// losses returns the phrases of a program that removes data outside the working directory: in clouds, clusters,
// containers, databases, registries and backups. A phrase such as "s3 rm" has words that occur in this order among the
// operands. A * in a word matches any letters. A program with an empty row always removes data.
var losses = table("losses", func(said string) [][]string {
	var phrases [][]string
	for phrase := range strings.SplitSeq(said, ",") {
		phrases = append(phrases, strings.Fields(phrase))
	}
	return phrases
})

// judgeRemoteLoss asks about a command that removes data outside the working directory, by the phrases in losses.
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

// looksInside reports whether a cluster client only shows something in a container, as in kubectl exec NAME -- cat
// FILE.
func looksInside(name string, fs []field) bool {
	at := slices.IndexFunc(fs, func(f field) bool { return f.text == "--" })
	shows := strings.Fields("cat ls head tail grep ps df du id whoami hostname date pwd stat wc uname")
	return slices.Contains([]string{"kubectl", "k", "oc", "kubecolor"}, name) && among(fs, "exec") &&
		at > 0 && at+1 < len(fs) && slices.Contains(shows, fs[at+1].text)
}

// rehearsed reports whether the words of a command ask only for a dry run or for help.
func rehearsed(fs []field) bool {
	return fs[len(fs)-1].text == "-h" || slices.ContainsFunc(fs[1:],
		func(f field) bool { return listed("rehearsals", f.text) })
}

// matchesPhrase reports whether the row of the program in this part of the table has a phrase that matches the words
// fs.
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

// inOrder reports whether the words of a phrase occur in words in this order. Other words, such as options and their
// values, may stand between them. The phrase must match within the first operands, because a later operand is not a
// subcommand. If "fold" is true, inOrder ignores case.
func inOrder(phrase, words []string, fold bool) bool {
	next, operands := 0, 0
	if len(phrase) == 0 {
		return true
	}
	phrase = slices.Clone(phrase)
	for i := range phrase { // path.Match does not match a slash with *, so the slashes are replaced
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

// client is the row of a database client in the part clients of programs.txt.
type client struct {
	valued string   // options that take a value
	text   []string // options with a statement as value
	from   int      // index of the first operand with statements; 0 means none
}

var clients = table("clients", func(said string) client {
	m := members(said, "valued", "text", "from")
	return client{valued: strings.Join(m["valued"], " "), text: m["text"], from: figure(m["from"])}
})

// statements matches statements that remove or change data or grant rights, in SQL and in the languages of document
// databases.
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

// sqlComments matches comments in SQL. A comment may stand between two words of a statement, such as drop and table.
var sqlComments = lazily(`(?s)/\*(?:[^!].*?)??\*/|--[^\n]*`)

// sqlStrings matches strings in SQL. Text in a string is harmless, unless the statement matches builds, because
// then a database may run the text as a statement.
var (
	sqlStrings = lazily(`'(?:[^']|'')*'`)
	builds     = lazily(`(?i)\b(execute|do|prepare|exec|eval|from\s+program|format|concat)\b`)
)

// shellEscapes matches lines that a database client passes to a shell. Its groups are the commands.
var shellEscapes = lazily(`(?m)(?:^|[;\s])(?:\\!|\.shell|\.system|\\system|system|!)\s+([^\n;]+)|\.(?:once|output|` +
	`read|import)\s+['"]?\|\s*([^\n]+)|\\[go]\s*\|\s*([^\n]+)`)

// statementFiles matches lines, such as .output FILE, with which a database client writes a file. Its group is the
// file.
var statementFiles = lazily(`(?im)(?:^\s*\.(?:output|once|backup|save|log|trace)(?:\s+main)?|\\o|\\copy\b.*?\bto|` +
	`\bcopy\b.*?\bto)\s+'?([/~.][^\s';]*)`)

// judgeDatabase judges the statements for a database client in its options, operands and known input.
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

// judgeStatement judges one text with statements. It reports whether statements matches the text.
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

// reads reports whether all statements in a text begin with a word that only reads data, such as select.
func reads(text string) bool {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(strings.ToLower(part))
		if len(words) > 0 && !slices.Contains(readers, words[0]) {
			return false
		}
	}
	return true
}
