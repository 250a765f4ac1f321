package screen

import (
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

const ttyPath = "CONIN$"

var readConsoleInput = windows.NewLazySystemDLL("kernel32.dll").NewProc("ReadConsoleInputW")

// device is the console. An event wakes the waiting goroutine.
type device struct {
	in, out, wake windows.Handle
	high          uint16 // the first half of a surrogate pair
}

func openDevice(path string) (*device, error) {
	in, err := openConsole(path)
	if err != nil {
		return nil, err
	}
	out, err := openConsole("CONOUT$")
	if err != nil {
		windows.CloseHandle(in)
		return nil, err
	}
	wake, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		windows.CloseHandle(in)
		windows.CloseHandle(out)
		return nil, err
	}
	return &device{in: in, out: out, wake: wake}, nil
}

func openConsole(name string) (windows.Handle, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, err
	}
	return windows.CreateFile(p, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_EXISTING, 0, 0)
}

func (d *device) closeAll() {
	for _, h := range []windows.Handle{d.in, d.out, d.wake} {
		windows.CloseHandle(h)
	}
}

func (d *device) setRaw() (restore func() error, err error) {
	var old uint32
	if err := windows.GetConsoleMode(d.in, &old); err != nil {
		return nil, err
	}
	mode := old &^ (windows.ENABLE_ECHO_INPUT | windows.ENABLE_PROCESSED_INPUT |
		windows.ENABLE_LINE_INPUT | windows.ENABLE_VIRTUAL_TERMINAL_INPUT)
	if err := windows.SetConsoleMode(d.in, mode); err != nil {
		return nil, err
	}
	return func() error { return windows.SetConsoleMode(d.in, old) }, nil
}

func (d *device) discardTyped() error {
	d.high = 0
	return windows.FlushConsoleInputBuffer(d.in)
}

func (d *device) echoText(s string) {
	u := utf16.Encode([]rune(s))
	var n uint32
	if len(u) > 0 {
		_ = windows.WriteConsole(d.out, &u[0], uint32(len(u)), &n, nil)
	}
}

func (d *device) readBytes(ctx context.Context, wait time.Duration) ([]byte, error) {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = windows.SetEvent(d.wake)
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken
			_ = windows.ResetEvent(d.wake)
		}
	}()
	deadline := time.Now().Add(wait)
	for {
		ms := uint32(windows.INFINITE)
		if wait > 0 {
			ms = uint32(max(time.Until(deadline), 0).Milliseconds())
		}
		ev, err := windows.WaitForMultipleObjects([]windows.Handle{d.in, d.wake}, false, ms)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case ev == uint32(windows.WAIT_TIMEOUT):
			return nil, errNothing
		case err != nil:
			return nil, err
		case ev != windows.WAIT_OBJECT_0:
			continue
		}
		b, err := d.records()
		if err != nil || len(b) > 0 {
			return b, err
		}
	}
}

// keyRecord is an INPUT_RECORD with a KEY_EVENT_RECORD.
type keyRecord struct {
	eventType uint16
	_         uint16
	down      int32
	repeat    uint16
	key, scan uint16
	char      uint16
	state     uint32
}

// records reads the records of the console and returns the characters that they contain. Arrow and function keys
// have no character. A character with Alt is dropped.
func (d *device) records() ([]byte, error) {
	const keyEvent, alt, altGr = 1, 0x3, 0x8
	var recs [64]keyRecord
	var n uint32
	ok, _, err := readConsoleInput.Call(uintptr(d.in), uintptr(unsafe.Pointer(&recs[0])), uintptr(len(recs)),
		uintptr(unsafe.Pointer(&n)))
	if ok == 0 {
		if errors.Is(err, windows.ERROR_INVALID_HANDLE) {
			return nil, io.EOF
		}
		return nil, err
	}
	var out []byte
	for _, r := range recs[:n] {
		if r.eventType != keyEvent || r.down == 0 || r.char == 0 || r.state&alt != 0 && r.state&altGr == 0 {
			continue
		}
		c := rune(r.char)
		if utf16.IsSurrogate(c) {
			if d.high == 0 {
				d.high = r.char
				continue
			}
			c = utf16.DecodeRune(rune(d.high), c)
		}
		d.high = 0
		out = append(out, string(c)...)
	}
	return out, nil
}
