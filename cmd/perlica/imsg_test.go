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

// imsg is a replacement for the command imsg and has one chat. It uses the folder imsg in the home directory. The
// file db has the stored messages, args has the command lines, and sent has the parameters of sent messages. Each
// line is one entry.
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
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"id": 1, "service": "iMessage",
			"last_message_at": lastSaid(db)})
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

// lastSaid returns the time of the last stored message.
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
