package hub

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestConnValues sends values to a server and back. Each must return unchanged, however unusual it is.
func TestConnValues(t *testing.T) {
	type word string
	text, at := "x", time.Date(2026, 11, 27, 23, 59, 59, 123456000, time.UTC)
	var nothing *string
	h := open(t, hubtest.Start(t).URL("owner", "postgres"))
	for sql, value := range map[string]any{
		"text":          "it's \"quoted\\\", {1,NULL}, \u202e, 中文\n",
		"name":          word("w"),
		"int":           -7,
		"bigint":        int64(1<<63 - 1),
		"numeric":       int64(12345678901),
		"boolean":       true,
		"bytea":         []byte("\x00\xff\\x41"),
		"bytea /* */":   []byte{},
		"json":          json.RawMessage(`{"a" : [1,  2]}`),
		"jsonb":         []Attachment{{Name: "a"}},
		"text[]":        []string{"", "NULL", `a"b\c`, "{x,y}", "中"},
		"text[] /**/":   []word{},
		"text[] /*2*/":  []string(nil),
		"timestamptz":   at.Local(),
		"text /* */":    &text,
		"text /* 2 */":  nothing,
		"bytea /* 2 */": []byte(nil),
	} {
		sent := value
		if list, ok := value.([]Attachment); ok {
			sent, _ = json.Marshal(list)
			sent = json.RawMessage(sent.([]byte))
		}
		got := reflect.New(reflect.TypeOf(value))
		err := h.do(t.Context(), func(ctx context.Context, c *Conn) error {
			return c.QueryRow(ctx, "SELECT $1::"+sql, sent).Scan(got.Interface())
		})
		if err != nil || !reflect.DeepEqual(got.Elem().Interface(), value) {
			t.Errorf("%s: %#v instead of %#v: %v", sql, got.Elem().Interface(), value, err)
		}
	}
	for sql, list := range map[string]struct {
		send any
		want string
	}{
		"int[]":         {[]int{1, -2, 3}, "1,-2,3"},
		"bytea[]":       {[][]byte{{1}, nil, {}}, `\x01,-,\x`},
		"timestamptz[]": {[]*time.Time{&at, nil}, "2026-11-27 23:59:59.123456+00,-"},
	} {
		var got string
		err := h.do(t.Context(), func(ctx context.Context, c *Conn) error {
			return c.QueryRow(ctx, "SELECT array_to_string($1::"+sql+", ',', '-')", list.send).Scan(&got)
		})
		if err != nil || got != list.want {
			t.Errorf("%s: %q: %v", sql, got, err)
		}
	}
}

// TestConnReplanned checks that a statement works again after a table of its result has changed. The call that finds
// the change fails, because nothing is sent twice.
func TestConnReplanned(t *testing.T) {
	h := open(t, hubtest.Start(t).URL("owner", "postgres"))
	run := func(sql string) error {
		return h.do(t.Context(), func(ctx context.Context, c *Conn) error { return c.run(ctx, sql) })
	}
	read := func() error {
		return h.do(t.Context(), func(ctx context.Context, c *Conn) error {
			_, err := c.Exec(ctx, "SELECT * FROM public.t")
			return err
		})
	}
	err := errors.Join(run("CREATE TABLE public.t (a int)"), read(), run("ALTER TABLE public.t ADD b int"))
	if err != nil {
		t.Fatal(err)
	}
	if err := read(); err == nil {
		t.Error("the changed table was read with the old plan")
	}
	if err := read(); err != nil {
		t.Error(err)
	}
}

// TestConnHostile decodes results of a server that breaks the protocol. Each is an error, and nothing panics.
func TestConnHostile(t *testing.T) {
	var n int
	var at time.Time
	var list []string
	var labels []Attachment
	head := string(array(oidText, [][]byte{}))
	for name, c := range map[string]struct {
		raw string
		to  any
	}{
		"a word as a number":         {"x", &n},
		"a number of 80 bits":        {"1208925819614629174706176", &n},
		"a word as a time":           {"infinity", &at},
		"a list that is cut":         {head[:7], &list},
		"a list without its header":  {"", &list},
		"a list of two dimensions":   {"\x00\x00\x00\x02" + head[4:], &list},
		"a length that is cut":       {head + "\x00\x00", &list},
		"a length over the end":      {head + "\x00\x00\x00\x09x", &list},
		"a NULL in a list":           {head + "\xff\xff\xff\xff", &list},
		"a text instead of the JSON": {"{", &labels},
		"a variable of another type": {"x", &struct{ a int }{}},
		"another number type":        {"1", new(float64)},
	} {
		if err := decode([]byte(c.raw), reflect.ValueOf(c.to).Elem()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := decode(nil, reflect.ValueOf(&n).Elem()); err == nil {
		t.Error("NULL as a number: no error")
	}
	if _, _, err := encode(1.5); err == nil || !strings.Contains(err.Error(), "float64") {
		t.Errorf("a float was sent: %v", err)
	}
}
