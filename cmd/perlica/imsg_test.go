package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// imsg is a stand-in for the command of that name, with one chat. In the folder imsg of the
// home: db, what Messages has stored, an object a line; args, its command lines; sent, the
// parameters of what was sent, likewise.
func imsg(args []string) int {
	dir := filepath.Join(os.Getenv("HOME"), "imsg")
	if err := imsgIn(dir, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func imsgIn(dir string, args []string) error {
	if err := appendLine(filepath.Join(dir, "args"), args); err != nil {
		return err
	}
	db, err := os.ReadFile(filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	switch args[0] {
	case "chats":
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"id": 1, "service": "iMessage", "last_message_at": lastSaid(db)})
	case "history":
		_, err := os.Stdout.Write(db)
		return err
	case "rpc":
		var request struct {
			Params json.RawMessage `json:"params"`
		}
		line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if err := json.Unmarshal(line, &request); err != nil {
			return err
		}
		if err := appendLine(filepath.Join(dir, "sent"), request.Params); err != nil {
			return err
		}
		_, err = fmt.Println(`{"jsonrpc":"2.0","id":"1","result":{"ok":true}}`)
		return err
	}
	return fmt.Errorf("no command %q", args[0])
}

func appendLine(path string, v any) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(v); err != nil {
		return err
	}
	return f.Close()
}

// lastSaid is when the last message of a stand-in's store was written.
func lastSaid(db []byte) (last time.Time) {
	var m struct {
		Created time.Time `json:"created_at"`
	}
	for line := range bytes.Lines(db) {
		if json.Unmarshal(line, &m) == nil {
			last = m.Created
		}
	}
	return last
}
