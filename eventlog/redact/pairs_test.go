package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPairs checks that the value of a pair such as {"name": "API_KEY", "value": "…"} is masked, for all names of the
// members, in any order and with other members in between. The values of other pairs must stay unchanged.
func TestPairs(t *testing.T) {
	const secret = "q00zebraXk29fLm7Qw"
	for _, s := range []string{
		`{"name":"STRIPE_KEY","value":"SECRET"}`, `{"name":"GH_PAT","value":"SECRET"}`,
		`{"name":"SUPABASE_SERVICE_ROLE_KEY","value":"SECRET"}`,
		`{"name":"REDIS_AUTH","value":"SECRET"}`, `{"name":"JWT","value":"SECRET"}`, `{"name":"ADMIN_PW","value":"SECRET"}`,
		`{"value":"SECRET","name":"DB_PASSWORD"}`, `{"value":"SECRET","name":"STRIPE_KEY"}`,
		`{"Key":"OPENAI_KEY","Value":"SECRET"}`,
		`{"key":"apiToken","value":"SECRET"}`, `{"header":"Authorization","value":"Bearer SECRET"}`,
		`{"headerName":"X-Api-Key","headerValue":"SECRET"}`,
		`{"variable":"accessToken","value":"SECRET"}`, `{"k":"clientSecret","v":"SECRET"}`,
		`{"env_name":"TOKEN","env_value":"SECRET"}`,
		`{"name":"TOKEN","type":"string","enabled":true,"value":"SECRET"}`,
		`{"value":"SECRET","n":12.5,"x":null,"name":"TOKEN"}`,
		`{"name" : "TOKEN" , "value" : "SECRET"}`, "{\n  \"name\": \"STRIPE_KEY\",\n  \"value\": \"SECRET\"\n}",
		`{'name': 'STRIPE_KEY', 'value': 'SECRET'}`,
		`{"a":[{"env":[{"name":"A","value":"b"},{"name":"STRIPE_KEY","value":"SECRET"}]}]}`,
		`{"type":"password","value":"SECRET"}`, `{"type":"password","name":"field1","value":"SECRET"}`,
		`{"name":"field1","value":"SECRET","type":"password"}`,
		`{"type":"string","name":"TOKEN","value":"SECRET"}`, `{"inputType":"PASSWORD","id":7,"value":"SECRET"}`,
		`[["Authorization","Bearer SECRET"]]`, `["x-api-key","SECRET"]`, "[\n  \"Authorization\",\n  \"Bearer SECRET\"\n]",
		`{"headers":[["Accept","a/b"],["Cookie","SECRET"]]}`, `['STRIPE_KEY', 'SECRET']`,
		`{"rawHeaders":["Host","a.example","Authorization","Basic SECRET","Accept","*/*"]}`,
		`{"env":["A=b","STRIPE_KEY=SECRET"]}`, `{"env":["TOKEN=SECRET"]}`,
		"- name: STRIPE_KEY\n  value: SECRET\n", "env:\n  - name: \"STRIPE_KEY\"\n    value: \"SECRET\"\n",
		"- name: 'STRIPE_KEY'\n  value: 'SECRET'\n",
		`{"x-api-key":["SECRET"]}`, `{"headers":{"Accept":["a/b"],"Authorization":["Bearer SECRET"]}}`,
		`{"api_keys": ["SECRET", "SECRET"]}`,
		`{"Set-Cookie":["a=b; Path=/","sid=SECRET; Secure"]}`, "{\"password\": [\n\t\"SECRET\"\n]}",
	} {
		s = strings.ReplaceAll(s, "SECRET", secret)
		for _, form := range []string{s, mustJSON(map[string]string{"text": s}),
			mustJSON([]string{mustJSON(map[string]string{"text": s})}), "log: " + s + " end"} {
			got := Text(form)
			if strings.Contains(got, secret) {
				t.Errorf("%s stays %s", form, got)
			}
			if json.Valid([]byte(form)) != json.Valid([]byte(got)) {
				t.Errorf("%s became %s", form, got)
			}
			if again := Text(got); again != got {
				t.Errorf("%s, and again %s", got, again)
			}
		}
	}
	for _, s := range []string{
		`{"name":"color","value":"q00zebraXk29fLm7Qw"}`, `{"name":"input_tokens","value":"123456789012"}`,
		`{"key":"id","value":"8f14e45fceea167a5a36"}`,
		`{"value":"q00zebraXk29fLm7Qw","name":"build"}`, `["password","token","api_key"]`, `["user","password","email"]`,
		`["token","secret","sessionId2x"]`, `["password","address1","sha256sum"]`,
		`{"password":["required","confirmed"]}`, `{"tokens":["the","quick","brown"]}`, `{"secret":[]}`, `{"token":[1,2]}`,
		`{"type":"token","value":"q00zebraXk29fLm7Qw"}`, `{"type":"text","value":"q00zebraXk29fLm7Qw"}`,
		`{"type":"password","value":""}`, `{"type":"password","label":"Password"}`,
		`["password","must not be empty"]`, `{"name":"sort_key","value":"createdAt"}`, `["Authorization"]`,
		`{"name":"PORT","value":"8080"},{"name":"HOST","value":"db1.example"}`, `{"key":"Enter","value":"submitForm12"}`,
	} {
		if got := Text(s); got != s {
			t.Errorf("%s became %s", s, got)
		}
	}
}
