package redact

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
	"sync"
)

// A program is a program that takes a secret on its command line. The first group of each expression matches the
// secret. The expressions contain abbreviations. gap is the separator of two words: blanks or, in a JSON array,
// quotes and a comma. open is the start of a word, and name is the name of a user.
type program struct {
	names string
	flags []string
}

var programs = []program{
	{"curl", []string{`open(?:-u|-U|--user|--proxy-user)(?:gap|=|quote)?name:(value)`,
		`open(?:--oauth2-bearer|--pass|--tlspassword)(?:gap|=)(value)`, `open(?:-b|--cookie)(?:gap|=)[^\s"'=\\]+=(value)`}},
	{"etcdctl", []string{`open--user(?:gap|=)name:(value)`}},
	{"netlify", []string{`open--auth(?:gap|=)(value)`}},
	{"conda", []string{`gaptokengapsetgap(value)`}},
	{"http https xh", []string{`open(?:-a|--auth)(?:gap|=)(?:name:)?(value)`}},
	{"wget", []string{`open--(?:http-|ftp-|proxy-)?password(?:gap|=)(value)`}},
	{"sshpass", []string{`open-p(?:gap|quote)?(value)`}},
	{"mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump mariadb-admin",
		[]string{`open-p(?:quote)?(value)`, `open-pgap(value)`}},
	{"redis-cli", []string{`open(?:-a|--pass)gap(value)`}},
	{"docker podman nerdctl buildah skopeo crane helm oras", []string{`loginopt-p(?:gap)?(value)`,
		`open--(?:src-|dest-)?creds(?:gap|=)name:(value)`}},
	{"oc az cf twine cqlsh", []string{`open-pgap(value)`}},
	{"ldapsearch ldapmodify ldapadd ldapwhoami ldapdelete ldappasswd", []string{`open-wgap(value)`}},
	{"smbclient", []string{`open-Ugapname%(value)`}},
	{"mongo mongosh mongodump mongorestore mongoexport mongoimport", []string{`open-pgap(value)`}},
	{"sqlcmd bcp mosquitto_pub mosquitto_sub zip unzip ipmitool", []string{`open-Pgap(value)`}},
	{"7z 7za rar unrar", []string{`open-p(value)`}},
	{"lftp", []string{`open-ugapname,(value)`}},
	{"openssl", []string{`gappass:(value)`, `open-[kK]gap(value)`}},
	{"keytool jarsigner", []string{`open-(?:src|dest)?(?:store|key)passgap(value)`}},
	{"snyk ngrok", []string{`gap(?:auth|authtoken|add-authtoken)gap(value)`}},
	{"reg", []string{`/v \w*(?i:password|secret|token|key)\b.*?/d +(value)`}},
	{"ssh-keygen", []string{`open-[NP](?:gap)(value)`}},
	{"gh", []string{`gapsecretgapsetgap(?:[^"'\\]*)open(?:--body|-b)(?:gap|=)(value)`}},
	{"net", []string{`gapusegap(?:[^ ]+ )?\\+[^ ]+gap([^\s"'\\/*][^\s"'\\]*)`}},
	{"vault", []string{`gaplogingap(?:token=)?(value)`}},
	{"aws", []string{`gapaws_(?:secret_access_key|session_token)gap(value)`}},
	{"htpasswd", []string{`open-[A-Za-z]*b[A-Za-z]*gap(?:-[A-Za-z0-9]+gap)*wordgapnamegap(value)`}},
	{"rabbitmqctl", []string{`gap(?:add_user|change_password)gapnamegap(value)`}},
	{"xfreerdp wfreerdp", []string{`/p:(value)`}},
	{"sqlplus", []string{`gapname/(value)@`}},
	{"echo printf",
		[]string{`^\w+(?: -n)?gap(value)gap?["']? *\| *(?:sudo +-S|sudo +-k *-S|[a-z]+ login .*--password-stdin)`}},
}

var abbreviations = strings.NewReplacer(
	"gap", `(?:[ \t]+(?:\\*["'])?|\\*["'][ \t]*,[ \t]*\\*["'])`, "open", `(?:^|[\s"'])`, "name", `[^\s"':,%/\\]*`, "word",
	`[^\s"']+`, "quote", `\\*["']`,
	"value", `[^\s"'\\-][^\s"'\\]*`, "loginopt", `\blogin\b.*?[\s"']`,
)

// command is a program with its expressions. The first use compiles them.
type command struct {
	name  string
	flags func() []flag
}

// flag is an expression for one secret. The lists in needs save time: a line can match only if it contains at least one
// text of each list, so other lines are not compared with the expression.
type flag struct {
	re    *regexp.Regexp
	needs [][]string
}

func newFlag(expr string) flag {
	expr = abbreviations.Replace(expr)
	f := flag{re: regexp.MustCompile(expr)}
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil && tree.Op == syntax.OpConcat {
		for _, part := range tree.Sub {
			if texts := needed(part); len(texts) > 0 {
				f.needs = append(f.needs, texts)
			}
		}
	}
	return f
}

// needed returns a list of texts. Every match contains at least one of them. The list is nil if the expression gives
// no such texts.
func needed(re *syntax.Regexp) (texts []string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			one := needed(sub)
			if one == nil {
				return nil
			}
			texts = append(texts, one...)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if one := needed(sub); one != nil {
				return one
			}
		}
	}
	return texts
}

// mayMatch reports whether a line contains the texts that the expression needs.
func (f flag) mayMatch(line string) bool {
	for _, texts := range f.needs {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			return false
		}
	}
	return true
}

// commandsBy returns a table of the commands by the first byte of their names.
var commandsBy = sync.OnceValue(func() *[256][]command {
	var t [256][]command
	for _, p := range programs {
		flags := sync.OnceValue(func() (list []flag) {
			for _, expr := range p.flags {
				list = append(list, newFlag(expr))
			}
			return list
		})
		for name := range strings.FieldsSeq(p.names) {
			t[name[0]] = append(t[name[0]], command{name, flags})
		}
	}
	return &t
})

// maskCommands masks the secrets on command lines. The commands begin at the offsets in t.commands. The words of a
// command line may be JSON strings.
func maskCommands(t *text) *edits {
	s, sc := t.s, newScanner(t)
	next := 0
	for _, at := range t.commands {
		for _, c := range commandsBy()[s[at]] {
			if at < next {
				break
			}
			end := at + len(c.name)
			if strings.HasPrefix(s[at:], c.name) && end < len(s) && strings.IndexByte(" \t\"'\\", s[end]) >= 0 {
				end = commandEnd(s, end)
				sc.commandLine(c, at, end)
				next = end
			}
		}
	}
	return &sc.edits
}

// commandEnd returns the offset at which the command line that contains s[at] ends. That is the end of the line, or
// an operator of the shell.
func commandEnd(s string, at int) int {
	const longest = 4 << 10
	for i := at; i < len(s) && i < at+longest; i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '\n' || s[i+1] == '\r'): // the line continues
			i += 2
		case s[i] == '\\':
			n := backslashesAt(s, i)
			if i+n < len(s) && s[i+n] == 'n' && n < 2 {
				return i
			}
			i += n - 1
		case s[i] == '\n', s[i] == ' ' && (strings.HasPrefix(s[i:], " && ") || strings.HasPrefix(s[i:], " ; ")),
			s[i] == ';' && strings.HasPrefix(s[i:], "; "):
			return i
		}
	}
	return min(len(s), at+longest)
}

// commandLine masks the secrets of the command c in s[from:to].
func (sc *scanner) commandLine(c command, from, to int) {
	s := sc.s
	line := sc.upTo(to, sc.isJSON(from))
	var spans [][2]int
	for _, f := range c.flags() {
		if !f.mayMatch(s[from:to]) {
			continue
		}
		for _, m := range f.re.FindAllStringSubmatchIndex(s[from:to], -1) {
			a, b := from+m[2], from+m[3]
			if q := s[a-1]; q == '"' || q == '\'' {
				b = line.closing(a, q, backslashes(s, a-1))
			} else if i := strings.LastIndexAny(s[from:a], " \t\"'"); i >= 0 && s[from+i] != ' ' && s[from+i] != '\t' { // "user:two words"
				if end := line.closing(a, s[from+i], backslashes(s, from+i)); end < to {
					b = end
				}
			}
			spans = append(spans, [2]int{a, b})
		}
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i][0] < spans[j][0] })
	for _, span := range spans {
		if v := s[span[0]:span[1]]; !isReference(v) && !strings.Contains(v, redacted) {
			sc.maskSecret(span[0], span[1])
		}
	}
}

// maskFlags masks VALUE in --api-key VALUE. The flag and the value may also be two strings of a JSON array. maskNamed
// masks --api-key=VALUE.
func maskFlags(t *text) *edits {
	s, sc := t.s, newScanner(t)
	next := 0
	for _, at := range t.flags {
		if at < max(next, sc.done) {
			continue
		}
		at += lengthOf(s[at:], func(c byte) bool { return c == '-' })
		end := at + lengthOf(s[at:], dashed)
		next = end
		if sc.nameOf(s[at:end]) != secretName {
			continue
		}
		from, level := sc.flagGap(end)
		if from == end || from == len(s) || s[from] == '-' {
			continue
		}
		to := sc.bareEnd(from, " \t,")
		if level >= 0 {
			to = sc.closing(from, s[from-1], level)
		}
		if v := s[from:to]; v != "" && !strings.Contains(v, redacted) && notInProse(v) {
			sc.maskRange(from, to)
		}
	}
	return &sc.edits
}

// flagGap skips the gap after the word that ends at s[at], and returns the start of the next word. level is the
// number of backslashes before the opening quote of the next word, or -1 if the word has no quote.
func (sc *scanner) flagGap(at int) (from, level int) {
	s := sc.s
	n := backslashesAt(s, at)
	if q := at + n; q < len(s) && (s[q] == '"' || s[q] == '\'') { // "--token", "value"
		comma := skip(s, q+1, ',')
		open := comma + backslashesAt(s, comma)
		if open-comma == n && open < len(s) && s[open] == s[q] && strings.Contains(s[q:open], ",") {
			return open + 1, n
		}
		return at, -1
	}
	from = at + lengthOf(s[at:], func(c byte) bool { return c == ' ' || c == '\t' })
	open := from + backslashesAt(s, from)
	if from > at && open < len(s) && (s[open] == '\'' || s[open] == '"' && (open > from || !sc.isJSON(open))) {
		return open + 1, open - from
	}
	return from, -1
}
