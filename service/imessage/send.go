package imessage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/perlica/perlica/service/channel"
)

// These are the codes of JSON-RPC that imsg rpc returns.
const (
	parseError     = -32700
	invalidRequest = -32600
	noSuchMethod   = -32601
	invalidParams  = -32602
)

// Send sends a text, a file, or both. It returns the id of Messages, or an empty id, because imsg does not always
// report the id. Send ignores Buttons and ReplyTo, because Messages has neither.
func (c *Channel) Send(ctx context.Context, m channel.Outbound) (string, error) {
	chat, err := strconv.ParseInt(m.Chat, 10, 64)
	if err != nil {
		return "", &channel.RejectedError{Why: fmt.Sprintf("%.40q is no chat of Messages", m.Chat)}
	}
	if n := channel.Units(m.Text); n > maxText {
		return "", &channel.RejectedError{Why: fmt.Sprintf("its text has %d characters, and %d are allowed", n, maxText)}
	}
	params := map[string]any{"chat_id": chat, "text": m.Text}
	if m.File != nil {
		info, err := os.Stat(m.File.Path)
		if err == nil && !info.Mode().IsRegular() {
			err = fs.ErrInvalid
		}
		if err != nil {
			return "", &channel.RejectedError{Why: "its file cannot be read: " + err.Error()}
		}
		params["file"] = m.File.Path
	}
	id, err := c.callRPC(ctx, params)
	if err != nil {
		return "", fmt.Errorf("imessage: %w", err)
	}
	c.rememberSent(id)
	return id, nil
}

// callRPC makes one request to a separate process of imsg rpc, which ends when its input ends.
func (c *Channel) callRPC(ctx context.Context, params any) (id string, err error) {
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "method": "send", "params": params})
	if err != nil {
		return "", fmt.Errorf("%w: %w", channel.ErrNotSent, err)
	}
	out, runErr := c.runCommand(ctx, append(request, '\n'), "rpc")
	type response struct {
		ID     any `json:"id"`
		Result *struct {
			OK   bool   `json:"ok"`
			GUID string `json:"guid"`
			Row  int64  `json:"id"`
		} `json:"result"`
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    string `json:"data"`
		} `json:"error"`
	}
	// The response counts, even if imsg failed after it.
	list, err := lines[response](out)
	for _, r := range list {
		switch {
		case r.ID != "1":
		case r.Result != nil && r.Result.OK:
			id := nameOf(r.Result.GUID, r.Result.Row)
			c.place(id, r.Result.Row)
			return id, nil
		case r.Error != nil:
			return "", judge(r.Error.Code, fmt.Sprintf("%d %s: %.*s", r.Error.Code, r.Error.Message, maxWords, r.Error.Data))
		}
	}
	if err := errors.Join(runErr, err); err != nil {
		return "", err
	}
	return "", errors.New("imsg rpc ends without an answer")
}

func judge(code int, said string) error {
	switch code {
	case invalidParams:
		return &channel.RejectedError{Why: said}
	case parseError, invalidRequest, noSuchMethod:
		return fmt.Errorf("%w: this imsg does not understand it (%s)", channel.ErrNotSent, said)
	}
	return fmt.Errorf("imsg says %s", said)
}

// rememberSent stores the id of a sent message, because Messages may show the message for a moment as another person's.
func (c *Channel) rememberSent(id string) {
	if id == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mine = append(c.mine, id)
	if len(c.mine) > maxMine {
		c.mine = c.mine[1:]
	}
}

func (c *Channel) isMine(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.mine, id)
}

// place records the row of a message.
func (c *Channel) place(id string, row int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.rows.Get(id); id != "" && row > 0 && !known {
		c.rows.Put(id, row)
	}
}

// After reports whether a message was stored after a sent one. The order is unknown if imsg
// returned no id and Messages has not shown the sent message yet.
func (c *Channel) After(m channel.Inbound, sent string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.rows.Get(sent)
	row, _ := c.rows.Get(m.ID)
	return ok && row > before
}
