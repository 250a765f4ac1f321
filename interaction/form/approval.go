package form

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perlica/perlica/interaction"
)

// Approval reports whether a form asks for approval of an action. These forms do: a form without fields, a form with a
// choice of yes or no, and a form in which the person types yes. A checkbox counts, too, if its texts ask for a
// permission, such as "Allow this command?".
func Approval(message string, schema json.RawMessage) bool {
	var s struct {
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Properties  json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	said := []string{message, s.Title, s.Description}
	fields, approves := 0, false
	_ = members(s.Properties, func(name string, raw json.RawMessage) error {
		var p property
		_ = json.Unmarshal(raw, &p) // After an error, the name and the decoded members count.
		fields++
		own := []string{name, p.Title, p.Description}
		approves = approves || p.approves(own, said)
		return nil
	})
	return fields == 0 || approves
}

// approves reports whether a field asks for an approval. The parameter "own" lists the texts of the field, and the
// parameter "said" lists the texts about the whole form.
func (p property) approves(own, said []string) bool {
	all := slices.Concat(own, said)
	if labels := p.labels(); len(labels) > 0 {
		yes, no := slices.ContainsFunc(labels, isYes), slices.ContainsFunc(labels, isNo)
		return yes && no || (yes || no) && slices.ContainsFunc(all, asksLeave)
	}
	switch p.Type {
	case "boolean":
		return slices.ContainsFunc(all, asksLeave)
	case "string", "":
		return slices.ContainsFunc(all, typeYes().MatchString) || yesPattern().MatchString(p.Pattern)
	}
	return false
}

// labels are the texts of the values that a field offers.
func (p property) labels() (list []string) {
	list = slices.Concat(p.Enum, p.EnumNames, p.items())
	for _, o := range slices.Concat(p.OneOf, p.Items.AnyOf) {
		list = append(list, o.Const, o.Title)
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// Texts returns each text of a form that could describe the requested action. It returns equal texts once.
func Texts(message string, schema json.RawMessage) []string {
	texts := []string{message}
	var gather func(v any, name string)
	gather = func(v any, name string) {
		switch v := v.(type) {
		case string:
			if name != "type" && name != "format" && name != "$schema" && name != "required" &&
				!slices.Contains(texts, v) {
				texts = append(texts, v)
			}
		case []any:
			for _, e := range v {
				gather(e, name)
			}
		case map[string]any:
			for name, e := range v {
				gather(e, name)
			}
		}
	}
	var s any
	_ = json.Unmarshal(schema, &s)
	gather(s, "")
	slices.Sort(texts[1:])
	return slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// Commands returns the commands in a text. A command is in backticks, after the prompt of a shell, or after a colon.
func Commands(text string) (list []string) {
	for _, m := range commandIn().FindAllStringSubmatch(text, -1) {
		for _, found := range m[1:] {
			if found = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(found), "?？!")); found != "" &&
				!slices.Contains(list, found) {
				list = append(list, found)
			}
		}
	}
	return list
}

var commandIn = lazilyExact("```(?:[a-z]*\\n)?([^`]+)```|`([^`\\n]+)`|(?m:^\\s*[$#>%] +(.+)$)|" +
	`(?i:\b(?:command|commands|run|execute|exec|approve|allow|confirm|shell|bash|befehl|comando|commande|polecenie|` +
	`opdracht|komut|команда|команду|выполнить|命令|执行|运行|批准|允许|コマンド|実行|명령|실행|الامر|कमांड) ?[:：] *)([^\n]+)`)

// Spans returns every part of a text that could be a command. Such a part begins with any word and ends with the
// line. Spans removes quotes and similar characters around a part.
func Spans(text string) (list []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for i := range line {
			if i > 0 && !strings.ContainsRune(" \t`'\"“”‘’«»(（[:：>，。、「『【", lastRune(line[:i])) ||
				len(list) >= mostSpans {
				continue
			}
			span := strings.TrimSpace(strings.Trim(line[i:], " \t`'\"“”‘’«»()（）[]?？!！。．,，;；」』】"))
			if end := strings.IndexAny(span, "`“”«»"); end > 0 {
				span = strings.TrimSpace(span[:end])
			}
			if span != "" && !slices.Contains(list, span) {
				list = append(list, span)
			}
		}
	}
	return list
}

// mostSpans is the maximum number of parts that Spans returns.
const mostSpans = 400

func lastRune(s string) rune {
	r := []rune(s)
	return r[len(r)-1]
}

// asksLeave reports whether a text asks for permission to do something.
func asksLeave(text string) bool {
	list := words(text)
	joined := strings.Join(list, " ")
	if leave().MatchString(joined) {
		return true
	}
	asking := strings.ContainsAny(text, "?？:：`؟") || len(list) <= 2
	return asking && doing().MatchString(joined)
}

var (
	leave = lazily(`\b(approv|allow|permit|permission|authori[sz]|grant|consent|confirm|proceed|go ahead|goahead|` +
		`ok to|okay to|safe to|may i|can i|shall i|should i|let me|agree|` +
		`aprob|aprov|autori|permit|confirm|proced|prosseg|approuv|permett|poursui|approv|consent|conferm|genehmig|` +
		`erlaub|zulass|bestatig|fortfahr|zustimm|freigeb|freigabe|` +
		`goedkeur|toestaan|toestemming|bevestig|doorgaan|akkoord|zatwierdz|zezw|pozw|potwierd|onayla|izin|tillat|` +
		`godkann|schval|povol|jovahagy|permis|confirm|setuju|izinkan|` +
		`разреш|одобр|подтверд|продолж|соглас|дозвол|підтверд)|批准|允许|允許|同意|授权|授權|确认|確認|确定|继续|繼續|许可|許可|准许|可以吗|承認|続行|` +
		`승인|허용|허가|확인|계속|동의|موافق|وافق|السماح|اسمح|تاكيد|متابعة|अनुमति|स्वीक|पुष्टि|जारी|อนุญาต|ยืนยัน|cho phep|` +
		`xac nhan`)
	doing = lazily(`\b(run|execut|continu|apply|delet|remov|install|push|deploy|send|start|perform|launch|invoke|` +
		`overwrite|drop|yes|ok|accept|ejecut|executa|continua|aceit|acept|accett|esegu|ausfuhr|` +
		`starten|losch|uitvoer|verwijder|wykona|uruchom|usun|kontynu|calistir|yurut|devam|sil|выполн|запуст|удал)|` +
		`执行|執行|运行|運行|删除|安装|推送|部署|発信|実行|削除|실행|삭제|تنفيذ|تشغيل|حذف|चला|निष्पाद|हटा`)
	typeYes = lazilyExact(`(?i)(type|enter|write|reply|respond|answer|say|input|escrib|digite|tape[rz]|saisi|` +
		`gib|tippe|scriv|typ|wpisz|yaz|введи|напиши|输入|回复|輸入|回覆|入力|입력)[^\n]{0,20}["'“‘«「]?(yes|y|ok|approve|allow|` +
		`confirm|proceed|run|si|sí|sim|oui|ja|tak|evet|да|是|同意|确认|確認|はい|예|네)(["'”’»」]|\b|$|[^\pL])`)
	yesPattern = lazilyExact(`(?i)\b(yes|y|approve|allow|confirm|ok|proceed)\b`)
	always     = lazily(`\b(always|every|session|remember|permanent\w*|forever|dont ask|never ask|immer|siempre|` +
		`toujours|sempre|altijd|zawsze|her zaman|всегда)\b|始终|总是|永久|一直|常に|항상|دائما|हमेशा`)
	yesWord = lazily(`^(y|yes|yep|yeah|ok|okay|sure|approved?|allow(ed)?|accept|confirm(ed)?|proceed|run|` +
		`execute|go|continue|grant|agree|permit|authori[sz]e|true|trust|always|once|do|si|sim|oui|ja|tak|evet|da|` +
		`да|aprobar|permitir|aprovar|autoriser|approuver|accepter|genehmigen|erlauben|zulassen|toestaan|goedkeuren|` +
		`zezwol|zatwierdz|onayla|разрешить|одобрить|выполнить)$|^(是|好|同意|允许|批准|确认|确定|执行|运行|继续|可以|はい|許可|承認|実行|예|네|` +
		`허용|승인|실행|نعم|موافق|السماح|हाँ|हां|अनुमति)`)
	noWord = lazily(`^(n|no|nope|deny|denied|reject|decline|cancel|abort|stop|skip|refuse|disallow|dont|never|` +
		`false|non|nein|nee|nie|hayir|нет|rechazar|cancelar|denegar|recusar|negar|refuser|annuler|rifiuta|annulla|` +
		`ablehnen|abbrechen|weigeren|annuleren|odrzuc|anuluj|reddet|iptal|отклонить|отмена|запретить)$|^(否|不|拒绝|取消|` +
		`停止|いいえ|拒否|キャンセル|아니|거부|취소|لا|رفض|الغاء|नहीं|अस्वीकार)`)
)

func isYes(label string) bool {
	list := words(label)
	return len(list) > 0 && yesWord().MatchString(list[0]) && !isNo(label)
}

// isNo reports whether a label is a plain no. A longer label may mean anything.
func isNo(label string) bool {
	list := words(label)
	return len(list) > 0 && len(list) <= 3 && noWord().MatchString(list[0]) &&
		!slices.ContainsFunc(list[1:], yesWord().MatchString) ||
		len(list) == 2 && list[0] == "don" && list[1] == "t" || len(list) == 3 && list[0] == "don" && list[1] == "t"
}

// AskLeave does the same as Ask, but for a form that asks for approval. It also turns the values that mean yes and no
// into the yes and the no of a permission.
func (f Field) AskLeave(q *interaction.Question) {
	f.Ask(q)
	for i, o := range q.Options {
		switch {
		case o.Offer || f.input != nil:
		case string(f.valueOf(o)) == "true":
			q.Options[i].Kind = "allow_once"
		case string(f.valueOf(o)) == "false", isNo(o.Label):
			q.Options[i].Kind = "reject_once"
		case isYes(o.Label) && always().MatchString(strings.Join(words(o.Label), " ")):
			q.Options[i].Kind = "allow_always"
		case isYes(o.Label):
			q.Options[i].Kind = "allow_once"
		}
	}
	q.Options = interaction.Order(q.Options)
}

// valueOf returns the value of an option.
func (f Field) valueOf(o interaction.Option) json.RawMessage {
	v, _, err := f.Value(interaction.Answer{Option: o.ID})
	if err != nil {
		return nil
	}
	return v
}
