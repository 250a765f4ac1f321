package feishu

import (
	"encoding/binary"
	"errors"
	"strconv"
)

// frame is a message of the long connection, in the encoding of Protocol Buffers (proto2, message pbbp2.Frame).
type frame struct {
	seq, log        uint64
	service, method int32
	headers         []header
	encoding, kind  string
	payload         []byte
	logNew          string
}

// header is a pair of a frame.
type header struct{ key, value string }

// These are the methods of frames.
const (
	control = 0 // a ping or a pong
	data    = 1 // an event, or the answer to it
)

// These are the wire types of Protocol Buffers.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// value returns the value of a header, or "".
func (f frame) value(key string) string {
	for _, h := range f.headers {
		if h.key == key {
			return h.value
		}
	}
	return ""
}

// number returns the value of a header as a number, or 0.
func (f frame) number(key string) int {
	n, err := strconv.Atoi(f.value(key))
	if err != nil {
		return 0
	}
	return n
}

// encode returns the bytes of a frame.
func (f frame) encode() []byte {
	var b []byte
	for i, n := range []uint64{f.seq, f.log, uint64(f.service), uint64(f.method)} {
		b = binary.AppendUvarint(append(b, byte(i+1)<<3|wireVarint), n)
	}
	for _, h := range f.headers {
		b = appendField(b, 5, appendField(appendField(nil, 1, []byte(h.key)), 2, []byte(h.value)))
	}
	b = appendField(b, 6, []byte(f.encoding))
	b = appendField(b, 7, []byte(f.kind))
	if f.payload != nil {
		b = appendField(b, 8, f.payload)
	}
	return appendField(b, 9, []byte(f.logNew))
}

// appendField appends a field of bytes.
func appendField(b []byte, number byte, v []byte) []byte {
	return append(binary.AppendUvarint(append(b, number<<3|wireBytes), uint64(len(v))), v...)
}

var errFrame = errors.New("the frame is malformed")

// decode parses a frame. It skips unknown fields.
func decode(b []byte) (f frame, err error) {
	err = eachField(b, func(number, n uint64, v []byte) error {
		switch number {
		case 1:
			f.seq = n
		case 2:
			f.log = n
		case 3:
			f.service = int32(n)
		case 4:
			f.method = int32(n)
		case 5:
			var h header
			f.headers = append(f.headers, h)
			last := &f.headers[len(f.headers)-1]
			return eachField(v, func(number, _ uint64, v []byte) error {
				switch number {
				case 1:
					last.key = string(v)
				case 2:
					last.value = string(v)
				}
				return nil
			})
		case 6:
			f.encoding = string(v)
		case 7:
			f.kind = string(v)
		case 8:
			f.payload = v
		case 9:
			f.logNew = string(v)
		}
		return nil
	})
	return f, err
}

// eachField calls take for each field of a message, with the field's number and its value: n is a number, v is bytes.
func eachField(b []byte, take func(number, n uint64, v []byte) error) error {
	for len(b) > 0 {
		tag, size := binary.Uvarint(b)
		if size <= 0 || tag>>3 == 0 {
			return errFrame
		}
		b = b[size:]
		n, v := uint64(0), []byte(nil)
		switch tag & 7 {
		case wireVarint:
			if n, size = binary.Uvarint(b); size <= 0 {
				return errFrame
			}
		case wireBytes:
			length, head := binary.Uvarint(b)
			if head <= 0 || length > uint64(len(b)-head) {
				return errFrame
			}
			v, size = b[head:head+int(length)], head+int(length)
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		default:
			return errFrame
		}
		if size > len(b) {
			return errFrame
		}
		if err := take(tag>>3, n, v); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}
