package imessage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// standIn is the variable that makes this binary imsg. Its value is the folder of the stand-in.
const standIn = "PERLICA_TEST_IMSG"

func TestMain(m *testing.M) {
	if dir := os.Getenv(standIn); dir != "" {
		if err := imsg(dir, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// db holds the stored messages. Chats from 1000 on are SMS.
type db []message

func store(name string, d db) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// imsg is the stand-in. Its folder has these files. The file db has the stored messages, and after-history replaces it
// once a history was read. The file mode names a fault to simulate. The file log has the command lines, and sent has
// the last sent message.
func imsg(dir string, args []string) error {
	alone, err := os.OpenFile(filepath.Join(dir, "running"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return note(dir, "met another")
	}
	defer func() {
		_ = alone.Close()
		_ = os.Remove(alone.Name())
	}()
	if err := note(dir, strings.Join(args, " ")); err != nil {
		return err
	}
	mode, err := os.ReadFile(filepath.Join(dir, "mode"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	switch string(mode) {
	case "hang":
		never, _, err := os.Pipe()
		if err != nil {
			return err
		}
		_, err = never.Read(make([]byte, 1))
		return err
	case "die":
		return errors.New("imsg needs full disk access")
	case "garbage":
		fmt.Println("Hello from imsg!")
		return nil
	case "silent":
		return nil
	}
	var d db
	b, err := os.ReadFile(filepath.Join(dir, "db"))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		return err
	}
	switch args[0] {
	case "chats":
		return d.chats(option(args, "--limit"))
	case "history":
		if err := d.history(option(args, "--chat-id"), option(args, "--limit")); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "after-history"), filepath.Join(dir, "db")); err != nil &&
			!os.IsNotExist(err) {
			return err
		}
		return nil
	case "rpc":
		return rpc(dir, string(mode))
	}
	return fmt.Errorf("no command %q", args[0])
}

func note(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func option(args []string, name string) int64 {
	i := slices.Index(args, name)
	n, err := strconv.ParseInt(args[i+1], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (d db) chats(limit int64) error {
	last := map[int64]message{}
	for _, m := range d {
		if !m.Created.Before(last[m.Chat].Created) {
			last[m.Chat] = m
		}
	}
	var list []message
	for _, m := range last {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b message) int { return b.Created.Compare(a.Created) })
	out := json.NewEncoder(os.Stdout)
	for _, m := range list[:min(int(limit), len(list))] {
		ch := chat{ID: m.Chat, Service: "iMessage", Last: m.Created}
		if m.Chat >= 1000 {
			ch.Service = "SMS"
		}
		if err := out.Encode(ch); err != nil {
			return err
		}
	}
	return nil
}

func (d db) history(chat, limit int64) error {
	out := json.NewEncoder(os.Stdout)
	for _, m := range slices.Backward(d) {
		if m.Chat != chat || limit == 0 {
			continue
		}
		limit--
		if err := out.Encode(m); err != nil {
			return err
		}
	}
	return nil
}

func rpc(dir, mode string) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r struct {
			ID     string          `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &r); err != nil || r.Method != "send" {
			return fmt.Errorf("%q is no request to send: %w", in.Bytes(), err)
		}
		if code, ok := strings.CutPrefix(mode, "code "); ok {
			fmt.Printf(`{"jsonrpc":"2.0","id":%q,"error":{"code":%s,"message":"no","data":"because"}}`+"\n", r.ID, code)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "sent"), r.Params, 0o600); err != nil {
			return err
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%q,"result":{"ok":true,"transport":"applescript","id":7,"guid":"SENT"}}`+"\n", r.ID)
	}
	return in.Err()
}
