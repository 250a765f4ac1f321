package email

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// TestQuotes checks that the answered mail below a reply is cut, and that other words of other people are noticed.
func TestQuotes(t *testing.T) {
	for _, c := range [][2]string{
		{"Yes, do it.\n\nOn Mon, Nov 23, 2026, Perlica wrote:\n> 1. yes\n> 2. no", "Yes, do it."},
		{"Yes.\n\nOn Mon, Nov 23, 2026 at 10:00 Perlica <bot@x>\nwrote:\n\n> 1. yes\n>\n", "Yes."},
		{"好的。\n\n在 2026年11月23日，Perlica 写道：\n> 1. yes", "好的。"},
		{"Yes.\n\n-----Original Message-----\nFrom: bot\n1. yes", "Yes."},
		{"Yes.\n____________________\nFrom: Perlica <bot@x>\nSent: Monday\nTo: Ann\nSubject: x\n\n1", "Yes."},
		{"可以\n\n发件人: Perlica\n发送时间: 星期一\n\n1", "可以"},
		{"> May I?\nYes.\n> And this?\nNo.", "> May I?\nYes.\n> And this?\nNo."},
		{"Nothing is quoted here:\nfrom: a to b", "Nothing is quoted here:\nfrom: a to b"},
		{"Ja.\n\nVon: Perlica <bot@x>\nGesendet: Montag, 23. November 2026\nAn: Ann\nBetreff: AW: x\n\n1", "Ja."},
		{"Oui.\n\nDe : Perlica <bot@x>\nEnvoyé : lundi 23 novembre\nÀ : Ann\nObjet : RE: x\n\n1", "Oui."},
		{"Sí.\n\nDe: Perlica <bot@x>\nEnviado: lunes, 23 de noviembre\nPara: Ann\nAsunto: RE: x\n\n1", "Sí."},
		{"Sì.\n\nDa: Perlica <bot@x>\nInviato: lunedì 23 novembre\nA: Ann\nOggetto: R: x\n\n1", "Sì."},
		{"Ja.\n\nVan: Perlica <bot@x>\nVerzonden: maandag\nAan: Ann\nOnderwerp: RE: x\n\n1", "Ja."},
		{"はい\n\n差出人: Perlica\n送信日時: 月曜日\n宛先: Ann\n件名: x\n\n1", "はい"},
		{"> only a quote", ""},
		{"Thanks\n\n-- \nAnn\n555", "Thanks"},
	} {
		if got := withoutSignature(withoutQuote(c[0])); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
	for text, want := range map[string]bool{
		"own words": false, "> a\nb": true, "See:\n---------- Forwarded message ---------\nFrom: x": true, "a > b": false,
	} {
		if hasQuote(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestBodies checks the text of mails of many forms.
func TestBodies(t *testing.T) {
	gbk, _ := simplifiedchinese.GBK.NewEncoder().String("你好，世界")
	latin, _ := charmap.ISO8859_1.NewEncoder().String("Grüße")
	russian, _ := charmap.Windows1251.NewEncoder().String("Привет")
	const page = "<html><head><style>p{}</style><title>t</title></head><body><p>Do <b>this</b>&nbsp;&amp; that.</p>" +
		"<div>Then<br>stop</div><script>alert(1)</script><div class=\"gmail_quote\">On Monday Perlica wrote:" +
		"<blockquote>1. yes</blockquote></div></body></html>"
	for name, c := range map[string]struct{ mail, text, unread string }{
		"plain":  {"\nHello\n", "Hello", ""},
		"base64": {"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n5L2g5aW9\n", "你好", ""},
		"quoted": {"Content-Type: text/plain; charset=utf-8\n" +
			"Content-Transfer-Encoding: quoted-printable\n\na=3Db=\nc\n", "a=bc", ""},
		"flowed": {"Content-Type: text/plain; charset=utf-8; format=flowed; delsp=no\n\nOne long \nline.\nNext.\n \nLast\n",
			"One long line.\nNext.\n\nLast", ""},
		"flowed, quoted": {"Content-Type: text/plain; format=flowed\n\n> his long \n> words\nmine \nhere\n-- \nAnn\n",
			"> his long words\nmine here\n-- \nAnn", ""},
		"flowed, delsp": {"Content-Type: text/plain; charset=utf-8; format=flowed; delsp=yes\n\n你 \n好\n  indented\n",
			"你好\n indented", ""},
		"gbk":      {"Content-Type: text/plain; charset=gb2312\n\n" + gbk, "你好，世界", ""},
		"latin":    {"Content-Type: text/plain; charset=\"ISO-8859-1\"\n\n" + latin, "Grüße", ""},
		"russian":  {"Content-Type: text/plain; charset=cp1251\n\n" + russian, "Привет", ""},
		"japanese": {"Content-Type: text/plain; charset=shift_jis\n\n\x82\xa0", "", "a mail in an unknown charset"},
		"HTML only": {"Content-Type: text/html; charset=utf-8\n\n" + page,
			"Do this & that.\nThen\nstop\nOn Monday Perlica wrote:\n> 1. yes", ""},
		"both": {"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n--b\n" +
			"Content-Type: text/html\n\n" + page + "\n--b--\n", "plain", ""},
		"empty plain": {"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n \n--b\n" +
			"Content-Type: text/html\n\n<p>rich</p>\n--b--\n", "rich", ""},
		"encrypted": {"Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n", "", "an encrypted mail"},
		"cut off":   {"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhalf", "half", ""},
		"bad type":  {"Content-Type: ;;;\n\ntext\n", "text", ""},
	} {
		got := readBody([]byte("From: a@x\n" + c.mail))
		if strings.TrimSpace(got.text) != c.text || got.unread != c.unread {
			t.Errorf("%s: %q, unread %q; want %q, %q", name, got.text, got.unread, c.text, c.unread)
		}
	}
	if got := withoutQuote(plainOf(page)); got != "Do this & that.\nThen\nstop" {
		t.Errorf("a reply in HTML: %q", got)
	}
}

func FuzzReadBody(f *testing.F) {
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>x\n--b--\n"))
	f.Add([]byte("Content-Type: text/plain; charset=gbk\nContent-Transfer-Encoding: base64\n\nxOM=\n"))
	f.Fuzz(func(t *testing.T, mail []byte) {
		b := readBody(mail)
		withoutSignature(withoutQuote(b.text))
		if strings.Contains(b.text, "\r\n") {
			t.Errorf("%q has line ends of a mail", b.text)
		}
	})
}
