package trail
import ("testing";"strings";"time")
func TestPerfX(t *testing.T){
 for _,p:=range []string{`token="`,`password=`,`token='`,`\\`,`"name":"`,`"name":"token","value":"`,`eyJ`,`-----BEGIN PRIVATE KEY-----`,`://`,`://a:b@`,`Bearer `,`--token `,`a`,`=`,`token=\"`,"password='\n",`sk-`,`sk-ant-abcdefgh `,`token`,`token: `,`{"a":"token=`, `eyJabcdefghi.`, `cookie: a`, "cookie:\n", `"token":`} {
  for _,pre:=range []string{"",`{"a":"`,`["x`} {
  s:=pre+strings.Repeat(p,1<<20/len(p))
  st:=time.Now(); Redact(s); if d:=time.Since(st); d>300*time.Millisecond {t.Logf("%q %q %v",pre,p,d)}
  }}
}
