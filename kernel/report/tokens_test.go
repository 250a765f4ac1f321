package report

import (
	"strings"
	"testing"
	"unicode"

	"github.com/jmoiron/sqlx"
)

func TestSegment(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                    {"", ""},
		"rm -rf /":            {"rm rf ", ""},
		"汉字":                  {"汉字 字 ", "汉 字 "},
		"汉字典 test":            {"汉字 字典 典 test ", "汉 字 典 "},
		"第3章":                 {"第 3 章 ", "第 章 "},
		"字":                   {"字 ", "字 "},
		"カタカナー":               {"カタ タカ カナ ナー ー ", "カ タ ナ ー "},
		"ひらがなと漢字":             {"ひら らが がな なと と漢 漢字 字 ", "ひ ら が な と 漢 字 "},
		"한국어 말":               {"한국 국어 어 말 ", "한 국 어 말 "},
		"สวัสดี":              {"สว วั ัส สด ดี ี ", "ส ว ั ด ี "},
		"naïve Ärger":         {"naïve Ärger ", ""},
		"snake_case.go:12":    {"snake case go 12 ", ""},
		"\x00\"a\xff*\" NEAR": {"a NEAR ", ""},
		"क्षत्रिय":            {"क्षत्रिय ", ""},
		"𠀀𠀁":                  {"𠀀𠀁 𠀁 ", "𠀀 𠀁 "},
	} {
		if tokens, chars := segment(text); tokens != want[0] || chars != want[1] {
			t.Errorf("segment(%q) = %q, %q, want %q", text, tokens, chars, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for phrase, want := range map[string]string{
		"":               "",
		"--- !":          "",
		"rm -rf":         `text : "rm rf"`,
		`say "NOT" OR *`: `text : "say NOT OR"`,
		"汉字":             `text : "汉字"`,
		"汉字典":            `text : "汉字 字典"`,
		"字":              `chars : "字"`,
		"test字":          `text : "test 字" *`,
		"汉字test":         `text : "汉字 字 test"`,
	} {
		if got := match(phrase); got != want {
			t.Errorf("match(%q) = %q, want %q", phrase, got, want)
		}
	}
}

// index returns a database with the schema of the search.
func index(tb testing.TB) *sqlx.DB {
	tb.Helper()
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(searchSchema); err != nil {
		tb.Fatal(err)
	}
	return db
}

// finds reports whether the index finds the phrase in the text.
func finds(tb testing.TB, db *sqlx.DB, text, phrase string) bool {
	tb.Helper()
	if _, err := db.Exec(`INSERT INTO words (words) VALUES ('delete-all')`); err != nil {
		tb.Fatal(err)
	}
	tokens, chars := segment(text)
	if _, err := db.Exec(`INSERT INTO words (rowid, text, chars, tags) VALUES (1, ?, ?, '')`, tokens, chars); err != nil {
		tb.Fatal(err)
	}
	var n int
	if err := db.Get(&n, `SELECT count(*) FROM words WHERE words MATCH ?`, match(phrase)); err != nil {
		tb.Fatalf("%q as %s: %v", phrase, match(phrase), err)
	}
	return n == 1
}

func TestWhatIsFound(t *testing.T) {
	db := index(t)
	for _, c := range []struct {
		text, phrase string
		want         bool
	}{
		{"please run rm -rf / now", "rm -rf", true},
		{"please run rm -f rf", "rm -rf", false},
		{"我想删除文件", "删除", true},
		{"我想删除文件", "除文", true},
		{"我想删除文件", "删文", false},
		{"我想删除文件", "件", true},
		{"我想删除文件", "我", true},
		{"我想删除文件", "我想删除文件", true},
		{"删 除", "删除", false},
		{"東京タワー", "タワー", true},
		{"東京タワー", "東京", true},
		{"パーサーを直す", "パーサー", true},
		{"오류를 고쳐라", "오류", true},
		{"ภาษาไทยยาก", "ไทย", true},
		{"运行go test命令", "go test", true},
		{"运行go test命令", "行go", true},
		{"运行go test命令", "test命", true},
		{"运行go test命令", "test令", false},
		{"第3章节", "第3章", true},
		{"Café crème", "cafe creme", true},
		{"cafe\u0301", "café", true},
		{"ÄRGER", "ärger", true},
		{"क्षत्रिय", "क्षत्रिय", true},
		{"क्षत्रिय", "क", false},
		{"snake_case", "snake_case", true},
		{"a NEAR b", "NEAR", true},
		{"text tags", "tags:text", false},
	} {
		if got := finds(t, db, c.text, c.phrase); got != c.want {
			t.Errorf("%q in %q: %v, want %v (%s)", c.phrase, c.text, got, c.want, match(c.phrase))
		}
	}
}

// TestMarks checks that an excerpt ignores the same combining marks as the index.
func TestMarks(t *testing.T) {
	db := index(t)
	for _, table := range []*unicode.RangeTable{unicode.Mn, unicode.Mc} {
		for r := rune(0x300); r < 0x20000; r++ {
			if !unicode.Is(table, r) {
				continue
			}
			text := "xa" + string(r) + "b"
			if got, marked := finds(t, db, text, "xab"), len(occurrences(units(text), units("xab"))) > 0; got != marked {
				t.Errorf("%U: found: %v, marked: %v", r, got, marked)
			}
		}
	}
}

// FuzzMatch checks that no phrase is a syntax error, and that the index finds each match that an excerpt marks.
func FuzzMatch(f *testing.F) {
	f.Add("please run rm -rf / now", 7, 20)
	f.Add("我想删除文件 test", 3, 9)
	f.Add("\"a\" OR b* NEAR(c) ^d", 0, 20)
	f.Add("พาไทย कि e\u0301", 0, 9)
	db := index(f)
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		from, to = max(0, min(from, len(text))), max(0, min(to, len(text)))
		phrase := text[min(from, to):max(from, to)]
		if match(phrase) == "" {
			return
		}
		if !finds(t, db, text, phrase) && len(occurrences(units(text), units(phrase))) > 0 {
			t.Errorf("%q is not found in %q by %s", phrase, text, match(phrase))
		}
	})
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("one two three ", 20)
	for _, c := range []struct {
		text    string
		phrases []string
		want    string
	}{
		{"please run\n  rm -rf / now", []string{"rm -rf"}, "please run [rm -rf] / now"},
		{"我想删除文件", []string{"删除"}, "我想[删除]文件"},
		{"字典和字", []string{"字"}, "[字]典和[字]"},
		{"删 除", []string{"删除"}, "删 除"},
		{"Café", []string{"cafe"}, "[Café]"},
		{"cafe\u0301!", []string{"CAFÉ"}, "[cafe\u0301]!"},
		{"a b", []string{"b", "a"}, "[a] [b]"},
		{long + "needle " + long, []string{"needle"},
			"…three one two three [needle] one two three one two three one two three o…"},
		{long + "针在哪里" + long, []string{"在哪"}, "…three one two three 针[在哪]里one two three one two three one two three one …"},
		{"nothing", []string{"other"}, "nothing"},
	} {
		var b strings.Builder
		for _, p := range excerpt(c.text, c.phrases, 70) {
			if p.Mark {
				b.WriteString("[" + p.Text + "]")
			} else {
				b.WriteString(p.Text)
			}
		}
		if b.String() != c.want {
			t.Errorf("excerpt(%.20q, %q) = %q, want %q", c.text, c.phrases, b.String(), c.want)
		}
	}
}
