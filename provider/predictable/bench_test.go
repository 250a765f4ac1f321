package predictable

import (
	"bufio"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkStream measures updates through a pipe. One operation is one update with a text of 200 bytes.
func BenchmarkStream(b *testing.B) {
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	read := make(chan int)
	go func() {
		lines := 0
		for s := bufio.NewScanner(r); s.Scan(); lines++ {
		}
		read <- lines
	}()
	script := "@stream " + strconv.Itoa(b.N) + " 200\n@exit 0"
	in := `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":` + promptParams("session-1", script) + "}\n"
	never, end := io.Pipe()
	defer end.Close()
	b.ReportAllocs()
	b.ResetTimer()
	opt := Options{Exit: func(int) {}}
	if err := Serve(context.Background(), io.MultiReader(strings.NewReader(in), never), w, io.Discard, opt); err != nil {
		b.Fatal(err)
	}
	w.Close()
	if got := <-read; got != b.N+1 {
		b.Errorf("%d lines of %d", got, b.N+1)
	}
}

// BenchmarkPrompt measures one turn: the prompt "hello", its updates and its response.
func BenchmarkPrompt(b *testing.B) {
	c := open(b, Options{})
	for b.Loop() {
		c.prompt("hello")
	}
}
