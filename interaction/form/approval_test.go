package form

import (
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/interaction"
)

// fieldOf returns the schema of a form with one field.
func fieldOf(property string) []byte {
	return []byte(`{"type":"object","properties":{"f":` + property + `}}`)
}

// TestApproval checks that Approval finds every form that asks for approval, in any language and with any fields. It
// must not accept a form that asks for values.
func TestApproval(t *testing.T) {
	for _, c := range []struct{ message, property string }{
		{"Run command: rm -rf / ?", `{"type":"boolean","title":"Approve: rm -rf /"}`},
		{"Run this?", `{"type":"boolean"}`},
		{"I need to run `make`", `{"type":"boolean","title":"OK"}`},
		{"Execute the migration?", `{"type":"string","enum":["yes","no"]}`},
		{"Next step", `{"type":"string","enum":["approve","deny"]}`},
		{"Next step", `{"type":"string","enum":["Allow once","Allow always","Reject"]}`},
		{"Next step", `{"type":"string","oneOf":[{"const":"1","title":"Proceed"},{"const":"2","title":"Cancel"}]}`},
		{"Next step", `{"type":"string","enum":["1","2"],"enumNames":["Run it","Skip"]}`},
		{"Delete the branch?", `{"type":"boolean","title":"yes"}`},
		{"Type \"yes\" to run the script", `{"type":"string","title":"Answer"}`},
		{"Question", `{"type":"string","title":"Enter 'yes' to confirm"}`},
		{"Question", `{"type":"string","title":"Answer","pattern":"^(yes|no)$"}`},
		{"Question", `{"type":"array","title":"Do","items":{"type":"string","enum":["approve","deny"]}}`},
		{"Question", `{"type":"boolean","title":"I authorize this action"}`},
		{"Question", `{"type":"boolean","title":"Аpprоvе"}`},
		{"Question", `{"type":"boolean","title":"允许执行"}`},
		{"执行命令 rm -rf / 吗？", `{"type":"boolean","title":"是"}`},
		{"Question", `{"type":"string","enum":["同意","拒绝"]}`},
		{"Question", `{"type":"string","enum":["はい","いいえ"]}`},
		{"실행을 허용하시겠습니까?", `{"type":"boolean"}`},
		{"Разрешить выполнение?", `{"type":"boolean"}`},
		{"¿Ejecutar el comando?", `{"type":"boolean","title":"Confirmar"}`},
		{"Executar o comando?", `{"type":"boolean","title":"Autorizar"}`},
		{"Exécuter la commande ?", `{"type":"boolean","title":"Autoriser"}`},
		{"Befehl ausführen?", `{"type":"boolean","title":"Genehmigen"}`},
		{"Eseguire il comando?", `{"type":"boolean"}`},
		{"Uruchomić polecenie?", `{"type":"boolean"}`},
		{"Opdracht uitvoeren?", `{"type":"boolean"}`},
		{"Komut çalıştırılsın mı?", `{"type":"boolean","title":"Onayla"}`},
		{"هل تسمح بتنفيذ الأمر؟", `{"type":"boolean"}`},
		{"कमांड चलाने की अनुमति दें?", `{"type":"boolean"}`},
	} {
		if !Approval(c.message, fieldOf(c.property)) {
			t.Errorf("%s %s is taken for no approval", c.message, c.property)
		}
	}
	if !Approval("Run it", []byte(`{"type":"object"}`)) {
		t.Error("a form without fields takes no more than a yes")
	}
	for _, c := range []struct{ message, property string }{
		{"Settings", `{"type":"string","title":"Branch"}`},
		{"Settings", `{"type":"boolean","title":"Use TypeScript"}`},
		{"Settings", `{"type":"string","title":"License","enum":["MIT","GPL"]}`},
		{"Settings", `{"type":"integer","title":"Retries"}`},
		{"Which release?", `{"type":"string","title":"Kind","enum":["minor","major"]}`},
		{"Settings", `{"type":"string","title":"Notes","description":"What is new"}`},
	} {
		if Approval(c.message, fieldOf(c.property)) {
			t.Errorf("%s %s is taken for an approval", c.message, c.property)
		}
	}
}

// TestSpans checks that Spans finds a command anywhere in a text.
func TestSpans(t *testing.T) {
	for text, command := range map[string]string{
		"Run command: rm -rf / ?":              "rm -rf /",
		"May I run `sudo reboot` now?":         "sudo reboot",
		"Please approve “rm -rf ~”":            "rm -rf ~",
		"是否执行：rm -rf /":                        "rm -rf /",
		"是否执行「rm -rf /」？":                      "rm -rf /",
		"first line\nthen (rm -rf /)":          "rm -rf /",
		"rm -rf /":                             "rm -rf /",
		"I want to clean up with rm -rf /home": "rm -rf /home",
	} {
		if got := Spans(text); !slices.Contains(got, command) {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := Commands("Run command: make all ?\n$ ls -l\nor `go test`"); !slices.Equal(got,
		[]string{"make all", "ls -l", "go test"}) {
		t.Errorf("the commands are %q", got)
	}
	if got := Texts("m", fieldOf(`{"type":"boolean","title":"a","description":"b","enum":["c"]}`)); !slices.Equal(got,
		[]string{"m", "a", "b", "c"}) {
		t.Errorf("the texts are %q", got)
	}
}

// TestAskLeave checks that the yes and the no of an approval form become the yes and the no of a permission. A value
// with both meanings must become neither.
func TestAskLeave(t *testing.T) {
	for property, want := range map[string]string{
		`{"type":"boolean"}`: "allow_once yes, answer leave this out, reject_once no, reject_once the agent is " +
			"told that you give no answer",
		`{"type":"string","enum":["Reject","Always allow","Allow once","No restrictions: run"]}`: "allow_once Allow once, answer No restrictions: run, answer leave this out, allow_always Always allow, " +
			"reject_once Reject, reject_once the agent is told that you give no answer",
	} {
		fields, err := Read("Run it?", fieldOf(property))
		if err != nil {
			t.Fatal(err)
		}
		q := interaction.Question{}
		fields[0].AskLeave(&q)
		var got []string
		for _, o := range q.Options {
			got = append(got, o.Kind+" "+o.Label)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %s", property, strings.Join(got, ", "))
		}
	}
}
