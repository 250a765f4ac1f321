package form

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// secretIn returns the part of a form that asks for a secret, or "". It also searches an invalid schema, because other
// clients may show it. The texts about the whole form count only if some field takes typed text, because a person
// cannot type a secret into a choice.
func secretIn(message string, schema json.RawMessage) string {
	var whole struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(schema, &whole)
	said := []string{message, whole.Title, whole.Description}
	what, typed := secretField(schema, strings.Join(said, "\n"), mostNested)
	if what == "" && typed && slices.ContainsFunc(said, isSecret) {
		what = "what is said of the whole form"
	}
	return what
}

// mostNested is the maximum nesting of a schema that secretIn searches. If a schema is deeper, secretIn reports that
// it hides a secret.
const mostNested = 10

// secretField returns the field in a schema that asks for a secret, or "". typed reports whether some field in the
// schema takes typed text. The parameter "said" is the text about the whole form.
func secretField(schema json.RawMessage, said string, deep int) (what string, typed bool) {
	if deep == 0 {
		return "what it has in itself", true
	}
	_ = members(schema, func(name string, raw json.RawMessage) error {
		field := name == "properties" || name == "patternProperties" || name == "$defs" || name == "definitions"
		if field {
			_ = members(raw, func(name string, raw json.RawMessage) error {
				inner, within := fieldSecret(name, raw, said, deep)
				what, typed = cmp.Or(what, inner), typed || within
				return nil
			})
			return nil
		}
		for _, part := range parts(raw) {
			inner, within := secretField(part, said, deep-1)
			what, typed = cmp.Or(what, inner), typed || within
		}
		return nil
	})
	return what, typed
}

// parts returns the objects in a value: the value itself if it is an object, or the objects of an array.
func parts(raw json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	return slices.DeleteFunc(list, func(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] != '{' })
}

// fieldSecret does the work of secretField for one field.
func fieldSecret(name string, raw json.RawMessage, said string, deep int) (what string, typed bool) {
	what, typed = secretField(raw, said, deep-1)
	p := map[string]any{}
	_ = json.Unmarshal(raw, &p) // The name counts even after an error.
	title, _ := p["title"].(string)
	text, _ := p["description"].(string)
	chosen := p["type"] == "boolean" || p["type"] == "array" || p["type"] == "object" || p["enum"] != nil ||
		p["oneOf"] != nil
	number := p["type"] == "integer" || p["type"] == "number"
	texts := []string{name, title, text}
	secret := slices.ContainsFunc(texts, isSecret)
	switch {
	case p["type"] == "boolean": // a yes or a no reveals no secret
		secret = false
	case number && secret:
		secret = slices.ContainsFunc(texts, isSecretNumber)
	case p["enum"] != nil || p["oneOf"] != nil:
		secret = secret && !isMethod(texts) || asksInLabels(p, append(texts, said))
	}
	secret = secret || marked(p) || isCode(p, append(texts, said))
	if secret {
		what = cmp.Or(what, title, name)
	}
	return what, typed || !chosen
}

// marked reports whether members of a field's schema mark the field as a secret. Such members are a format,
// writeOnly, a widget for passwords, and an example or pattern of a known kind of key.
func marked(p map[string]any) bool {
	for name, v := range p {
		switch v := v.(type) {
		case bool:
			if v && (name == "writeOnly" || isMark(name)) {
				return true
			}
		case string:
			if markedText(name, v) {
				return true
			}
		case []any:
			if strings.HasPrefix(name, "example") && slices.ContainsFunc(v,
				func(e any) bool { s, _ := e.(string); return known().MatchString(s) || isSecret(s) }) {
				return true
			}
		case map[string]any:
			if name != "properties" && name != "items" && name != "definitions" && name != "$defs" &&
				name != "patternProperties" && marked(v) {
				return true
			}
		}
	}
	return false
}

// patternText makes the prefix of a key readable in a regular expression. For example, it turns "^sk[_-]live" into
// "sk_live".
var patternText = strings.NewReplacer(`\`, "", "^", "", "(", " ", "?:", "", "[_-]", "_", "[-_]", "-")

// markedText reports whether one member with a text marks the field as a secret.
func markedText(name, v string) bool {
	switch name {
	case "title", "description", "type", "const", "default":
		return known().MatchString(v)
	case "pattern":
		return known().MatchString(patternText.Replace(v)) || begins().MatchString(v) || isSecret(v)
	}
	return known().MatchString(v) || isSecret(v)
}

// isMark reports whether a member with this name and the value true marks a field as a secret.
func isMark(name string) bool {
	joined := strings.Join(words(name), "")
	return slices.ContainsFunc([]string{"secret", "sensitive", "password", "confidential", "masked", "hidden",
		"obscure", "redact"}, func(mark string) bool { return strings.Contains(joined, mark) })
}

// known matches the prefixes of keys and tokens of known services.
var known = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^A-Za-z0-9])(sk-|sk_(live|test)|rk_(live|test)|pk_live|gh[pousr]_|github_pat|` +
		`glpat-|gldt-|xox[abeoprs]|xapp-|AKIA|ASIA|AIza|ya29|npm_|pypi-|hf_|dop_v1|shpat_|SG[.]|eyJ|lin_api|sq0|` +
		`whsec_|AGE-SECRET|-----BEGIN|gsk_|pplx-|r8_|tvly-|dckr_pat|ATATT|figd_|ntn_|secret_)`)
})

// begins matches a prefix of a key inside a pattern of a schema, such as "ghp" in "^ghp[A-Z]+$". Any sign of the
// pattern may follow the prefix.
var begins = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^A-Za-z0-9])(gh[pousr]|sk|xox|xox[a-z]|glpat|AKIA|ASIA|A[KS]IA|AIza|npm|pypi|hf|` +
		`whsec|eyJ|shpat|BEGIN)([^A-Za-z0-9]|$)`)
})

// digits matches a pattern that allows only four to ten digits.
var digits = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\^?\(?(\\d|\[0-9\])(\{(\d+)(,\d+)?\}|\+|(\\d|\[0-9\])+)\)?\$?$`)
})

// isCode reports whether a field of digits asks for a one-time code or another secret code.
func isCode(p map[string]any, texts []string) bool {
	pattern, _ := p["pattern"].(string)
	least, _ := p["minLength"].(float64)
	most, _ := p["maxLength"].(float64)
	if !digits().MatchString(pattern) && !(least == most && least >= 4 && least <= 8) {
		return false
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		list := words(text)
		i := slices.IndexFunc(list, func(w string) bool {
			return slices.Contains([]string{"code", "codes", "codigo", "codice", "kod", "kodu", "kode", "cod", "kods",
				"passcode", "digits", "koд"}, w) || strings.Contains(w, "代码") || strings.Contains(w, "コード") ||
				strings.Contains(w, "코드") || strings.Contains(w, folded("код"))
		})
		return i >= 0 && !slices.ContainsFunc(list, func(w string) bool { return ordinaryCodes().MatchString(w) })
	})
}

// ordinaryCodes matches the words before "code" that name a public code, such as "zip".
var ordinaryCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(zip|postal|post|postcode|area|country|dial|dialling|language|currency|error|exit|` +
		`status|response|http|airport|station|product|item|color|colour|discount|coupon|promo|promotion|voucher|` +
		`bar|qr|source|department|dept|branch|sort|swift|region|state|course|class|store|sku|naics|sic|hs|icd|tax|` +
		`postale|postleitzahl|postal|cap|plz|postcodes|year|month|return|event|reason|char|character|key|unicode|` +
		`ascii|morse|gate|flight|project|ticket|order|job|cost|gl|account|邮政|邮编|区号|почтовыи|индекс)$`)
})

// asksInLabels reports whether the labels of a choice ask for a secret. A choice between ways to log in does not ask
// for a secret.
func asksInLabels(p map[string]any, texts []string) bool {
	var labels []string
	for _, name := range []string{"enum", "enumNames", "oneOf"} {
		list, _ := p[name].([]any)
		for _, v := range list {
			switch v := v.(type) {
			case string:
				labels = append(labels, v)
			case map[string]any:
				for _, of := range []string{"title", "const", "description"} {
					s, _ := v[of].(string)
					labels = append(labels, s)
				}
			}
		}
	}
	return slices.ContainsFunc(labels, func(label string) bool {
		if known().MatchString(label) {
			return true
		}
		return isSecret(label) && (hasWord(words(label), ownWords) || !isMethod(texts))
	})
}

// isMethod reports whether a choice is between ways, kinds or places, such as ways to log in. Its label "password" then
// asks for no secret.
func isMethod(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(words(text), func(w string) bool { return methods().MatchString(w) })
	})
}

var methods = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(auth|authenti.*|method|methods|type|types|kind|login|signin|sign|how|mode|` +
		`protocol|strategy|storage|provider|store|backend|which|manager|policy|option|factor|channel|scheme|` +
		`mechanism|flow|format|source|scope|expiry|level|credentials?|metod[aeo]?|methode|tipo|typ|art|способ|тип|` +
		`метод)$|方式|方法|类型|种类|方式|認証|인증 ?방식|유형`)
})

// isSecret reports whether a text names or requests a value that must not be on the log. It returns true for a few
// harmless texts, too.
func isSecret(text string) bool { return namesSecret(text, false) }

// isSecretNumber does the work of isSecret for a number. A number may also be a limit or the length of a secret.
func isSecretNumber(text string) bool { return namesSecret(text, true) }

func namesSecret(text string, number bool) bool {
	if strings.Contains(text, "[sudo]") {
		return true
	}
	return slices.ContainsFunc(respelled(text), func(text string) bool { return readingNamesSecret(text, number) })
}

// readingNamesSecret reports whether a text names a secret. The text is one of the readings from respelled.
func readingNamesSecret(text string, number bool) bool {
	list := words(text)
	if len(list) == 0 {
		return false
	}
	own := hasWord(list, ownWords)
	if joined := strings.Join(list, ""); foreign(joined) {
		return true
	}
	for _, list := range [][]string{list, slices.DeleteFunc(slices.Clone(list),
		func(w string) bool { return little()[w] })} {
		for i := range list {
			if term, end := termAt(list, i); term != "" && !harmless(term, list, end, number, own) {
				return true
			}
			if wordAt(list, i, number, own) {
				return true
			}
			if w := spelled(list, i); w != "" && readingNamesSecret(w, number) {
				return true
			}
		}
		if codes().MatchString(strings.Join(list, " ")) || sentCode(list) {
			return true
		}
	}
	return false
}

// codes matches texts about codes that prove a person's identity.
var codes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(verif\w*|one time|onetime|single use|log ?in|sign ?in|security|auth|authenti\w*|` +
		`authori\w*|confirm\w*|backup|recovery|rescue|sms|texted|authenticator|access|unlock|secret|sent|otp|totp|` +
		`2fa|mfa|two factor|2 step|2 factor|two step|temporary|emailed|pairing|invite|invitation|duo|okta|door|` +
		`alarm|gate) (\w+ ){0,2}(codes?|digits|number pin)\b` +
		`|\b(codes?|digits|number) (\w+ ){0,5}(authenticator|sms|texted|sent|emailed|received|receive|your phone|` +
		`your email|your mail|your app|text message)\b` +
		`|\bcodes? from (the|your|my|an) (email|e mail|mail|sms|text|message|phone)\b|\bcodes? from (your|my) \w+\b` +
		`|\b(enter|type|paste|your|the) (\w+ )?\w*(4|5|6|7|8|four|five|six|seven|eight) ?(digit|digits|character|` +
		`letter|figure)s? (\w+ )?(code|number|pin)s?\b|\b(4|6|8|four|six|eight) digits? codes?\b` +
		`|\b(seed|recovery|mnemonic|backup|wallet|secret) (\w+ ){0,2}(phrases?|words?|seed|sentence)\b|\b(12|24|` +
		`twelve|twenty four) (\w+ )?(words|word (\w+ )?phrase)\b` +
		`|\b(security|secret|recovery) (question )?answers?\b|\banswers? (\w+ ){0,3}(security|secret|recovery) ` +
		`questions?\b|\bmothers? maiden\b|\bmaiden name\b|\b(card|credit|debit) (\w+ )?number\b|\bcard ` +
		`verification\b|\bsecurity number\b` +
		`|\b(bank|routing) (account )?number\b|\bsigning (key|secret)\b|\bservice account (json|key|file)\b|` +
		`\bpersonal access\b|\bauth\w* header\b|\bsession (id|cookie|key|token)\b|\bsudo (\w+ )?for\b|` +
		`\bprivate (ssh |gpg |pgp |rsa )?key\b|\bconnection string\b|\bkey pair\b|\bpass (word|phrase|code|` +
		`key)s?\b|\bunlock pattern\b|\bmaster (key|pass)\b`)
})

// spelled joins the single letters from the index i on, as in "p i n", to one word. It returns "" for fewer than three
// letters.
func spelled(list []string, i int) string {
	if utf8.RuneCountInString(list[i]) != 1 || utf8.RuneCountInString(wordOr(list, i-1)) == 1 {
		return ""
	}
	end := i
	for end < len(list) && utf8.RuneCountInString(list[end]) == 1 {
		end++
	}
	if end < i+3 {
		return ""
	}
	return strings.Join(list[i:end], "")
}

// sentCode reports whether a text, in any language, asks for a code that a person received, or a code with a number
// of digits. If the code is in an app, the text must say so, because "code" may also mean program code.
func sentCode(list []string) bool {
	i := slices.IndexFunc(list, codeWord().MatchString)
	if i < 0 || slices.ContainsFunc(list, ordinaryCodes().MatchString) {
		return false
	}
	return slices.ContainsFunc(list, proofWord().MatchString) ||
		!strings.HasPrefix(list[i], "code") && slices.ContainsFunc(list, fromWord().MatchString) ||
		codeFrom().MatchString(strings.Join(list, " "))
}

var (
	codeWord = lazily(`^(codes?|codigos?|codici|codice|kod|kody|kodu|kodunu|kode|kods?|cod|koodi|رمز|الرمز|कोड|` +
		`код|кода|коды)$`)
	proofWord = lazily(`^(sms|mms|2fa|mfa|otp|totp|pin|texted|authenticator|whatsapp|telegram|` +
		`recibido|recebido|recu|ricevuto|erhalten\w*|ontvangen|otrzymany|primit|enviado|enviada|envoye|inviato|` +
		`gesendet\w*|zugesandt\w*|verstuurd|wyslany|gonderilen|` +
		`digitos|digits?|chiffres|cifre|cifras|ziffern?|\d?stellig\w*|cijfers|cijferig\w*|cyfr\w*|haneli|ارقام|अंक|` +
		`अंकों|смс|цифр\pL*)$`)
	fromWord = lazily(`^(app|aplikacji|aplicacion|aplicativo|applicazione|uygulama\w*|telefono|telefone|telefon\w*|` +
		`mail|email|correo|posta|письма|приложения|телефон\pL*)$`)
	codeFrom = lazily(`\bcode (aus|uit|par|per|via|por|dal|de|da|du) (\w+ )?(app|mail|email|sms|telefon|telefoon|` +
		`telephone|application|appli|courriel)\b`)
)

// lazilyExact returns a function that compiles expr at its first call. The expression is for unchanged texts.
func lazilyExact(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// lazily returns a function that folds and compiles expr at its first call. The expression is for folded texts. Copies
// of lazily at its uses would add 20 KB to the program.
//
//go:noinline
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		var b strings.Builder
		for _, r := range expr { // Signs and Latin letters stay unchanged.
			if r < utf8.RuneSelf {
				b.WriteRune(r)
			} else {
				b.WriteString(folded(string(r)))
			}
		}
		return regexp.MustCompile(b.String())
	})
}

// wordAt reports whether the word at the index i means a secret, considering the words around it. The parameter
// "number" is true for the text of a number field. The parameter "own" is true if the text has a word such as "your"
// or "enter".
func wordAt(list []string, i int, number, own bool) bool {
	w := strings.TrimRight(list[i], "0123456789")
	next, before := wordOr(list, i+1), wordOr(list, i-1)
	switch w {
	case "token", "tokens", "jeton", "jetons":
		return !harmless("token", list, i, number, own)
	case "pin", "pins":
		return isSecretPin(list, i, own) && !(number && lengthAfter().MatchString(next))
	case "pat":
		return len(list) == 1 || before != "" && !slices.Contains([]string{"a", "the", "his", "her", "file"}, before) &&
			next == "" || own
	case "pass":
		return len(list) == 1 || next == "" && !slices.Contains([]string{"boarding", "test", "first", "second", "third",
			"single", "high", "low", "band", "render", "by", "season", "to", "must", "mountain", "ski", "will", "tests",
			"checks", "multi", "all", "day"}, before) && len(list) <= 3
	case "pwd":
		return len(list) <= 2
	case "tan":
		return own || before == "ihre" || len(list) == 1
	case "cookie", "cookies":
		return len(list) == 1 || slices.ContainsFunc(list, func(o string) bool {
			return slices.Contains([]string{"session", "auth", "value", "header", "string", "login", "browser", "paste",
				"your", "my", "enter"}, o)
		}) && !slices.Contains(list, "banner") && !slices.Contains(list, "consent")
	case "parola":
		return next != "chiave"
	case "bearer":
		return true
	}
	switch {
	case strings.HasSuffix(w, "token") || strings.HasSuffix(w, "tokens"):
		return !slices.Contains(harmlessTokens, w)
	case containsSecret(w):
		return !harmless("secret", list, i, number, own)
	case inList(keyWords, w):
		return isAccessKey(list, i, own)
	}
	return isServiceKey(w)
}

// harmlessTokens are words that end in "token" and do not name a secret.
var harmlessTokens = strings.Fields(`maxtokens mintokens maxtoken numtokens tokentokens eostoken bostoken padtoken
	stoptoken cancellationtoken nexttoken pagetoken subtoken subtokens pretoken detoken`)

// containsSecret reports whether a word begins or ends with "secret". Words such as "secretary" do not count.
func containsSecret(w string) bool {
	if strings.HasSuffix(w, "secret") || strings.HasSuffix(w, "secrets") {
		return true
	}
	return strings.HasPrefix(w, "secret") && !strings.HasPrefix(w, "secretar") && !strings.HasPrefix(w, "secreti")
}

// isServiceKey reports whether a word consists of the name of a service and "key".
func isServiceKey(w string) bool {
	name, ok := strings.CutSuffix(strings.TrimSuffix(w, "s"), "key")
	return len(w) > 5 && ok && service()[name]
}

// isAccessKey reports whether the word for a key at the index i means a key that grants access.
func isAccessKey(list []string, i int, own bool) bool {
	before, next := wordOr(list, i-1), wordOr(list, i+1)
	english := list[i] == "key" || list[i] == "keys"
	switch {
	case service()[before], service()[next], service()[next+wordOr(list, i+2)], service()[wordOr(list, i-2)+before]:
		return !otherUses()[next]
	case (next == "for" || next == folded("от") || next == folded("для") || next == "de" || next == "von" ||
		next == "do") && (service()[wordOr(list, i+2)] || service()[wordOr(list, i+2)+wordOr(list, i+3)]),
		next == "to" && slices.Contains(list[i:], "unlock"):
		return true
	case before == "" && (next == "" || !own), otherUses()[next]:
		return false
	case own && (inList(ownWords, before)):
		return before != "enter" && before != "type" || next == ""
	}
	return english && before != "" && !otherKey()[before] && !inList(ownWords, before)
}

// isSecretPin reports whether the word "pin" at the index i means a secret number.
func isSecretPin(list []string, i int, own bool) bool {
	before, next := wordOr(list, i-1), wordOr(list, i+1)
	switch {
	case slices.Contains([]string{"gpio", "output", "input", "data", "clock", "led", "reset", "pinned", "map", "drop",
		"safety", "push", "bowling", "hair", "rolling", "reset", "analog", "digital", "signal", "to", "should", "tx",
		"rx", "sda", "scl", "board", "pinterest", "firing", "unpin", "or"}, before):
		return false
	case slices.Contains([]string{"the", "this", "that", "to", "version", "versions", "dependency", "dependencies",
		"tab", "message", "comment", "post", "gpio", "it", "them", "these", "all", "exact", "package", "packages",
		"board", "up", "layout", "map", "numbering", "mode", "name", "actions", "items", "item", "toolbar", "sidebar",
		"location", "here", "strategy", "on", "image", "images", "digest", "commit", "config", "assignment", "mapping",
		"direction", "out"}, next):
		return own && next == "to" && before == "your"
	}
	return true
}

// harmless reports whether the words next to a term change its meaning, so that it is not a secret itself. The
// parameter "end" is the index of the term's last word.
func harmless(term string, list []string, end int, number, own bool) bool {
	next, before := wordOr(list, end+1), wordOr(list, end-1)
	switch {
	case strings.HasPrefix(term, "token"), term == "jeton":
		return !own && (tokenAfter().MatchString(next) || tokenBefore().MatchString(before)) ||
			number && (tokenAfter().MatchString(next) || slices.ContainsFunc(list[:end], tokenBefore().MatchString) ||
				strings.HasSuffix(list[end], "tokens"))
	case strings.HasPrefix(term, "secret"), strings.HasPrefix(term, "credential"):
		return !own && secretAfter().MatchString(next) || number && secretAfter().MatchString(next)
	case strings.HasPrefix(term, "passw"), strings.HasPrefix(term, "passp"), strings.HasPrefix(term, "passc"),
		strings.HasPrefix(term, "pswd"):
		return number && (lengthAfter().MatchString(next) || tokenBefore().MatchString(before)) ||
			!own && passwordAfter().MatchString(next)
	case strings.HasPrefix(term, "sessionid"), strings.HasPrefix(term, "kubeconfig"),
		strings.HasPrefix(term, "keyfile"), strings.HasPrefix(term, "keystore"):
		return slices.Contains([]string{"path", "context", "location", "file", "type", "alias", "name", "format",
			"column"}, next)
	case strings.HasPrefix(term, "cardnumber"), strings.HasPrefix(term, "creditcard"),
		strings.HasPrefix(term, "debitcard"):
		return slices.Contains([]string{"type", "brand", "network", "form", "processor", "icon", "component", "column",
			"validator", "payment", "payments", "fee", "fees"}, next)
	}
	return number && lengthAfter().MatchString(next)
}

var (
	tokenAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(limits?|counts?|budgets?|usage|size|length|window|windows|per|type|types|` +
			`costs?|price|pricing|ratio|ring|expiry|expiration|lifetime|ttl|names?|symbol|address|standard|bucket|` +
			`threshold|quota|economy|allowance|estimate|estimates|rate|stream|streaming|supply|decimals|kinds?|` +
			`colors?|set|vocabulary|endpoint|url|issuer|scopes?|format|algorithm|based|refresh|rotation|max|` +
			`maximum|counter|header|prefix|separator)$`)
	})
	tokenBefore = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(max|maximum|min|minimum|number|num|total|count|input|output|context|prompt|` +
			`completion|stop|special|eos|bos|pad|separator|design|thinking|reasoning|syntax|erc20|governance|nft|` +
			`cancellation|color|colour|theme|spacing|typography|limit|budget|many|fewer|more|cached|generated|new|` +
			`reserved|n|k|1000|million|thousand|css|lexer|parser|next|page|utility|native|length|expire|expires|` +
			`expiry|ttl|lifetime)$`)
	})
	secretAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(names?|manager|store|stores|ref|refs|reference|references|path|paths|santa|` +
			`scanning|scanner|scan|rotation|engine|version|type|kind|backend|provider|helper|expiry|namespace|` +
			`mount|location|length|detection|sharing|count|garden|sauce|level|source|prefix|policy|vault|file)$`)
	})
	passwordAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(field|fields|column|label|selector|policy|policies|generator|manager|hash|` +
			`hashing|algorithm|placeholder|visibility|strength|less|protected|protection|rules?|complexity|length|` +
			`expiry|expiration|rotation|requirements?|validation|validator|managers|reset|input|component|page|` +
			`screen|form|flow|encoder|recovery|authentication|auth)$`)
	})
	lengthAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(length|policy|min|max|minimum|maximum|expiry|expiration|rotation|strength|age|` +
			`history|attempts|retries|complexity|lifetime|ttl|timeout|days|size|bits|rounds|cost|count|limit|` +
			`limits|iterations|score|interval|duration|valid)$`)
	})
	little = sync.OnceValue(func() map[string]bool {
		return wordSet(`de, du, la, le, l, d, of, the, a, an, di, del, della, da, do, dos, das, der, die, den, el, ` +
			`los, las, het, een, un, une, para, per, pour, fur, for, dla, за, для, от, из`)
	})
	service   = sync.OnceValue(func() map[string]bool { return wordSet(services) })
	otherKey  = sync.OnceValue(func() map[string]bool { return wordSet(otherKeys) })
	otherUses = sync.OnceValue(func() map[string]bool { return wordSet(otherKeyUses) })
	lists     = sync.OnceValue(func() map[string]map[string]bool {
		return map[string]map[string]bool{ownWords: wordSet(ownWords), keyWords: wordSet(keyWords)}
	})
)

func wordOr(list []string, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i]
}

// wordSet splits a list at its commas. It folds each entry, so that a folded word of a form can be looked up.
func wordSet(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.SplitSeq(list, ",") {
		if w = strings.Join(words(w), ""); w != "" {
			m[w] = true
		}
	}
	return m
}

func inList(list, w string) bool { return lists()[list][w] }

func hasWord(list []string, of string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return inList(of, w) })
}

// terms are the words for secrets. A word in the field latin also counts inside a longer word. A word in the field
// whole counts only as a whole word. The field other has the words in other scripts.
var terms = sync.OnceValue(func() (t struct {
	latin, other []string
	whole        map[string]bool
}) {
	t.whole = wordSet(secretWords)
	for w := range strings.SplitSeq(secretParts, ",") {
		w = strings.TrimSpace(w)
		if w == "" {
			continue
		}
		plain := strings.Join(words(w), "")
		if isLatin(w) {
			t.latin = append(t.latin, plain)
		} else {
			t.other = append(t.other, plain)
		}
	}
	return t
})

func isLatin(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f }) }

// foreign reports whether a text contains a word for a secret in another script than Latin. joined is the text
// without separators.
func foreign(joined string) bool {
	for _, t := range terms().other {
		for rest := joined; ; {
			_, after, ok := strings.Cut(rest, t)
			if !ok {
				break
			}
			if !about().MatchString(after) {
				return true
			}
			rest = after
		}
	}
	return false
}

// about matches endings that turn a word for a secret into a property of the secret, as in "password length". A text
// with such an ending asks for no secret.
var about = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(数|上限|制限|限|数量|预算|長|长度|策略|强度|管理器|规则|个数|计数|窗口|ポリシー|の長さ|の有効期限|化|화|수|제한|정책|길이|` +
		folded("ов") + `$|` + folded("ная политика") + `)`)
})

// termAt returns the longest Latin term for a secret that begins with the word at the index i. The result "end" is the
// index of the term's last word. The term may consist of several words, or be part of a longer word.
func termAt(list []string, i int) (term string, end int) {
	t := terms()
	joined := ""
	for j := i; j < len(list) && len(joined) < 30; j++ {
		joined += list[j]
		if t.whole[joined] && (j == i || len(joined) > 3) {
			term, end = joined, j
		}
		for _, of := range t.latin {
			if rest, ok := strings.CutPrefix(joined, of); ok && len(rest) <= 2 && len(of) > len(term) {
				term, end = of, j
			}
		}
	}
	for _, of := range t.latin {
		if len(of) > max(len(term), 5) && strings.Contains(list[i], of) {
			term, end = of, i
		}
	}
	return term, end
}
