package hub

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection to a hub's server. It exists because pgx's own connection links a codec for every type of
// PostgreSQL, which is a tenth of the program. This package needs texts, integers, booleans, times, bytes, JSON and
// lists of these. One goroutine at a time may use a Conn.
//
// A parameter of type []byte is a bytea, a json.RawMessage is JSON, and nil is NULL.
type Conn struct {
	pg       *pgconn.PgConn
	prepared map[string]*pgconn.StatementDescription // by SQL, so that the server plans each statement once
}

// The object ids of the types that cross the connection in binary, from PostgreSQL's catalog pg_type. All other values
// cross it as text.
const (
	oidBytes = 17
	oidText  = 25
	oidTexts = 1009
)

// timeLayout is the layout in which the server sends a timestamptz, because the connection sets datestyle = ISO.
const timeLayout = "2006-01-02 15:04:05.999999Z07"

// Exchange is a list of statements that cross the network together and run in one transaction.
type Exchange []queued

type queued struct {
	sql  string
	args []any
	read func(*rows) error // reads the result; nil ignores the result
}

// Add adds a statement. The caller may use the returned pointer until the next Add.
func (x *Exchange) Add(sql string, args ...any) *queued {
	*x = append(*x, queued{sql, args, nil})
	return &(*x)[len(*x)-1]
}

// Exec runs a statement and returns the number of affected rows.
func (c *Conn) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	rows, err := c.query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	tag, err := rows.reader.Close()
	return tag.RowsAffected(), err
}

// QueryRow runs a statement. The caller must call Scan on the result, which reads the first row.
func (c *Conn) QueryRow(ctx context.Context, sql string, args ...any) Row {
	rows, err := c.query(ctx, sql, args...)
	return Row{rows, err}
}

// Row is the result of QueryRow.
type Row struct {
	rows *rows
	err  error
}

// Scan copies the columns of the first row to variables. The error is sql.ErrNoRows if there is no row.
func (r Row) Scan(destinations ...any) error {
	if r.err != nil {
		return r.err
	}
	if !r.rows.next() {
		return cmp.Or(r.rows.close(), sql.ErrNoRows)
	}
	err := r.rows.scan(destinations...)
	return cmp.Or(err, r.rows.close())
}

// Send runs an exchange. The first use of a statement takes one more round trip, because the server must prepare it.
func (c *Conn) Send(ctx context.Context, x Exchange) error {
	var batch pgconn.Batch
	for _, s := range x {
		known, values, formats, err := c.prepare(ctx, s.sql, s.args)
		if err != nil {
			return err
		}
		batch.ExecStatement(known, values, formats, resultFormats(known))
	}
	results := c.pg.ExecBatch(ctx, &batch)
	var err error
	for _, s := range x {
		if err != nil || !results.NextResult() {
			break
		}
		result := &rows{results.ResultReader()}
		if s.read == nil {
			err = result.close()
			continue
		}
		err = s.read(result)
	}
	return cmp.Or(results.Close(), err)
}

// transact calls f in a transaction. It rolls back after an error of f.
func (c *Conn) transact(ctx context.Context, f func() error) error {
	if err := c.run(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := f(); err != nil {
		_ = c.rollback(ctx) // the first error counts
		return err
	}
	results, err := c.pg.Exec(ctx, "COMMIT").ReadAll()
	if err == nil && results[0].CommandTag.String() != "COMMIT" {
		return errors.New("hub: the server rolled the transaction back")
	}
	return err
}

// rollback ends a transaction. If it fails, it closes the connection, and so the server ends the transaction.
func (c *Conn) rollback(ctx context.Context) error {
	err := c.run(ctx, "ROLLBACK")
	if err != nil {
		_ = c.pg.Close(ctx) // the first error counts
	}
	return err
}

// run runs SQL without parameters and results. It may have several statements.
func (c *Conn) run(ctx context.Context, sql string) error {
	_, err := c.pg.Exec(ctx, sql).ReadAll()
	return err
}

// query runs a statement. The caller closes the rows before the next use of the connection.
func (c *Conn) query(ctx context.Context, sql string, args ...any) (*rows, error) {
	known, values, formats, err := c.prepare(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return &rows{c.pg.ExecStatement(ctx, known, values, formats, resultFormats(known))}, nil
}

// prepare encodes the arguments, and prepares the statement at its first use.
func (c *Conn) prepare(ctx context.Context, sql string, args []any) (known *pgconn.StatementDescription,
	values [][]byte, formats []int16, err error) {
	for i, arg := range args {
		value, format, err := encode(arg)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("hub: parameter %d: %w", i+1, err)
		}
		values, formats = append(values, value), append(formats, format)
	}
	if known = c.prepared[sql]; known == nil {
		if known, err = c.pg.Prepare(ctx, fmt.Sprint("s", len(c.prepared)+1), sql, nil); err != nil {
			return nil, nil, nil, err
		}
		c.prepared[sql] = known
	}
	return known, values, formats, nil
}

// Formats of a value on the wire.
const (
	asText   = 0
	asBinary = 1
)

// resultFormats returns the format of each column of a statement's result.
func resultFormats(s *pgconn.StatementDescription) []int16 {
	formats := make([]int16, len(s.Fields))
	for i, f := range s.Fields {
		if f.DataTypeOID == oidBytes || f.DataTypeOID == oidTexts {
			formats[i] = asBinary
		}
	}
	return formats
}

// encode returns a parameter as bytes and their format.
func encode(arg any) (value []byte, format int16, err error) {
	switch arg := arg.(type) {
	case nil:
		return nil, asText, nil
	case []byte:
		return arg, asBinary, nil
	case json.RawMessage:
		return arg, asText, nil
	case [][]byte:
		return array(oidBytes, arg), asBinary, nil
	case time.Time:
		return arg.UTC().Truncate(time.Microsecond).AppendFormat(nil, timeLayout), asText, nil
	}
	v := reflect.ValueOf(arg)
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil, asText, nil
		}
		return encode(v.Elem().Interface())
	case reflect.String:
		return []byte(v.String()), asText, nil
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(nil, v.Int(), 10), asText, nil
	case reflect.Bool:
		return strconv.AppendBool(nil, v.Bool()), asText, nil
	case reflect.Slice:
		if v.IsNil() {
			return nil, asText, nil
		}
		list := make([][]byte, v.Len())
		for i := range list {
			if list[i], _, err = encode(v.Index(i).Interface()); err != nil {
				return nil, asText, err
			}
		}
		if v.Type().Elem().Kind() == reflect.String {
			return array(oidText, list), asBinary, nil
		}
		return arrayLiteral(list), asText, nil
	}
	return nil, asText, fmt.Errorf("a %T cannot be sent", arg)
}

// array returns a list as array_recv of PostgreSQL reads it: the number of dimensions, a flag for NULL, the type of the
// elements, the length, the first index, and each element after its length. A NULL has the length -1.
func array(oid uint32, list [][]byte) []byte {
	if list == nil {
		return nil
	}
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, oid)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, e := range list {
		if e == nil {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(e))), e...)
	}
	return b
}

// arrayLiteral returns integers or times as an array's text. None of them has a character that needs an escape.
func arrayLiteral(list [][]byte) []byte {
	b := []byte{'{'}
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if e == nil {
			b = append(b, "NULL"...)
			continue
		}
		b = append(append(append(b, '"'), e...), '"')
	}
	return append(b, '}')
}

// rows is the result of a statement.
type rows struct{ reader *pgconn.ResultReader }

// next moves to the next row and reports whether it exists.
func (r *rows) next() bool { return r.reader.NextRow() }

// close reads the result to its end and returns the statement's error.
func (r *rows) close() error {
	_, err := r.reader.Close()
	return err
}

// scan copies the columns of the present row to variables. If a destination is nil, its column is skipped.
func (r *rows) scan(destinations ...any) error {
	values := r.reader.Values()
	if len(values) != len(destinations) {
		return fmt.Errorf("hub: the server sent %d columns instead of %d", len(values), len(destinations))
	}
	for i, d := range destinations {
		if d == nil {
			continue
		}
		if err := decode(values[i], reflect.ValueOf(d).Elem()); err != nil {
			return fmt.Errorf("hub: column %d: %w", i+1, err)
		}
	}
	return nil
}

// each scans every row into the same variables and calls f after each one. It closes the rows.
func (r *rows) each(destinations []any, f func() error) error {
	for r.next() {
		if err := r.scan(destinations...); err != nil {
			_ = r.close() // the first error counts
			return err
		}
		if err := f(); err != nil {
			_ = r.close() // the first error counts
			return err
		}
	}
	return r.close()
}

// collect reads all rows and closes them. T is the type of the only column, or a struct whose fields are the columns.
func collect[T any](r *rows) ([]T, error) {
	list := []T{}
	var one T
	destinations := []any{&one}
	if v := reflect.ValueOf(&one).Elem(); v.Kind() == reflect.Struct {
		destinations = make([]any, v.NumField())
		for i := range destinations {
			destinations[i] = v.Field(i).Addr().Interface()
		}
	}
	err := r.each(destinations, func() error {
		list = append(list, one)
		return nil
	})
	return list, err
}

// collectOne reads all rows as collect does and returns the first one. Without a row, the error is sql.ErrNoRows.
func collectOne[T any](r *rows) (one T, err error) {
	list, err := collect[T](r)
	if err != nil {
		return one, err
	}
	if len(list) == 0 {
		return one, sql.ErrNoRows
	}
	return list[0], nil
}

var (
	errNull = errors.New("the server sent NULL")
	errForm = errors.New("the server sent a value of another form")
)

// decode writes a column's value to a variable. It keeps no reference to the bytes in "raw". If "raw" is nil, the
// value is NULL.
func decode(raw []byte, to reflect.Value) error {
	kind := to.Kind()
	if raw == nil {
		if kind != reflect.Pointer && kind != reflect.Slice {
			return errNull
		}
		to.SetZero()
		return nil
	}
	text := string(raw)
	switch kind {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return decode(raw, to.Elem())
	case reflect.String:
		to.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		to.SetInt(n)
		return err
	case reflect.Bool:
		to.SetBool(text == "t")
	case reflect.Struct:
		if to.Type() != reflect.TypeFor[time.Time]() {
			return errForm
		}
		at, err := time.Parse(timeLayout, text)
		to.Set(reflect.ValueOf(at.Local()))
		return err
	case reflect.Slice:
		return decodeList(raw, to)
	default:
		return errForm
	}
	return nil
}

// decodeList writes bytes, a list of texts, or JSON to a slice.
func decodeList(raw []byte, to reflect.Value) error {
	switch to.Type().Elem().Kind() {
	case reflect.Uint8:
		to.SetBytes(append([]byte{}, raw...))
		return nil
	case reflect.String:
	default:
		to.SetZero()
		return json.Unmarshal(raw, to.Addr().Interface())
	}
	// This is the format of the function array, with no dimension for an empty list.
	const head = 20
	to.Set(reflect.MakeSlice(to.Type(), 0, 0))
	if len(raw) < head || binary.BigEndian.Uint32(raw) != 1 {
		if len(raw) >= 4 && binary.BigEndian.Uint32(raw) == 0 {
			return nil
		}
		return errForm
	}
	for raw = raw[head:]; len(raw) > 0; {
		if len(raw) < 4 {
			return errForm
		}
		n := int64(int32(binary.BigEndian.Uint32(raw)))
		if raw = raw[4:]; n < 0 || n > int64(len(raw)) {
			return errForm
		}
		element := reflect.New(to.Type().Elem()).Elem()
		element.SetString(string(raw[:n]))
		to.Set(reflect.Append(to, element))
		raw = raw[n:]
	}
	return nil
}
