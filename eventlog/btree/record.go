package btree

import "encoding/binary"

// Kind is the storage class of a Value.
type Kind byte

// These are the storage classes of SQLite.
const (
	Null Kind = iota
	Integer
	Real
	Text
	Blob
)

// Value is a column of a record.
type Value struct {
	Kind Kind
	Int  int64  // of an Integer
	Data []byte // of a Text or a Blob; a part of the record
}

// Columns parses a record and returns its columns in the memory of list.
func Columns(record []byte, list []Value) ([]Value, error) {
	list = list[:0]
	size, at := varint(record)
	if at == 0 || size < int64(at) || size > int64(len(record)) {
		return nil, fault("a record has no header")
	}
	head, body := record[at:size], record[size:]
	for len(head) > 0 {
		kind, n := varint(head)
		if n == 0 {
			return nil, fault("the header of a record ends too early")
		}
		head = head[n:]
		v, n, ok := value(kind, body)
		if !ok {
			return nil, fault("a record ends too early or has an unknown type")
		}
		body = body[n:]
		list = append(list, v)
	}
	if len(body) > 0 {
		return nil, fault("a record is too long")
	}
	return list, nil
}

// value returns the value at the start of body and its length.
func value(kind int64, body []byte) (v Value, n int, ok bool) {
	if kind >= 12 {
		size := (kind - 12) / 2
		if size > int64(len(body)) {
			return v, 0, false
		}
		v = Value{Kind: Blob, Data: body[:size]}
		if kind&1 == 1 {
			v.Kind = Text
		}
		return v, int(size), true
	}
	if kind < 0 || kind > 9 {
		return v, 0, false
	}
	n = int([...]byte{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[kind])
	if len(body) < n {
		return v, 0, false
	}
	v.Kind = Integer
	switch kind {
	case 0:
		v.Kind = Null
	case 1:
		v.Int = int64(int8(body[0]))
	case 2:
		v.Int = int64(int16(binary.BigEndian.Uint16(body)))
	case 3:
		v.Int = int64(int8(body[0]))<<16 | int64(binary.BigEndian.Uint16(body[1:]))
	case 4:
		v.Int = int64(int32(binary.BigEndian.Uint32(body)))
	case 5:
		v.Int = int64(int16(binary.BigEndian.Uint16(body)))<<32 | int64(binary.BigEndian.Uint32(body[2:]))
	case 6:
		v.Int = int64(binary.BigEndian.Uint64(body))
	case 7:
		v.Kind = Real
	case 8, 9:
		v.Int = kind - 8
	}
	return v, n, true
}
