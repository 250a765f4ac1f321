package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// code is the error code of a method. The empty code means success.
type code string

// needs has the scope of each method. Methods without an entry need none.
var needs = map[string]string{
	"chat.postMessage": "chat:write", "chat.update": "chat:write", "chat.delete": "chat:write",
	"reactions.add": "reactions:write", "users.info": "users:read", "files.info": "files:read",
	"files.getUploadURLExternal": "files:write", "files.completeUploadExternal": "files:write",
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, method string) {
	s.mu.Lock()
	s.calls[method]++
	s.changed()
	s.mu.Unlock()
	var f Fault
	if s.Fault != nil {
		f = s.Fault(method)
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	case f.Late:
	case f.Status != 0:
		fail(w, f)
		return
	case f.Code != "":
		respond(w, map[string]any{"ok": false, "error": f.Code})
		return
	}
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || len(r.URL.RawQuery) > 0 {
		respond(w, map[string]any{"ok": false, "error": "invalid_form_data"})
		return
	}
	body, c := s.method(r, method)
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Half:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"ok":true,"channel":"D0`)
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	case f.Late:
		fail(w, f)
		return
	case c != "":
		body = map[string]any{"ok": false, "error": string(c)}
		if c == "missing_scope" {
			body["needed"], body["provided"] = needs[method], strings.Join(s.Scopes, ",")
		}
	default:
		body["ok"] = true
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(s.Scopes, ","))
	respond(w, body)
}

// fail answers with a status.
func fail(w http.ResponseWriter, f Fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Say) // fails only if the client has disconnected
}

// method carries out a method.
func (s *Server) method(r *http.Request, method string) (map[string]any, code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, want := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), BotToken
	if token == "" {
		token = r.Form.Get("token")
	}
	if method == "apps.connections.open" {
		want = AppToken
	}
	scope := needs[method]
	switch {
	case s.revoked:
		return nil, "token_revoked"
	case token == AppToken && want == BotToken, token == BotToken && want == AppToken:
		return nil, "not_allowed_token_type"
	case token != want:
		return nil, "invalid_auth"
	case scope != "" && !slices.Contains(s.Scopes, scope):
		return nil, "missing_scope"
	}
	switch method {
	case "auth.test":
		return map[string]any{"user_id": BotUser, "bot_id": BotID, "user": "perlica", "team": "Tests", "team_id": "T0"}, ""
	case "apps.connections.open":
		if s.disabled {
			return nil, "socket_mode_disabled"
		}
		return map[string]any{"url": "ws" + strings.TrimPrefix(s.host, "http") + "/link/?ticket=secret-ticket"}, ""
	case "bots.info":
		return map[string]any{"bot": map[string]any{"id": BotID, "app_id": s.App}}, ""
	case "users.info":
		name, ok := s.people[r.Form.Get("user")]
		if !ok {
			return nil, "user_not_found"
		}
		return map[string]any{"user": map[string]any{"id": r.Form.Get("user"), "name": strings.ToLower(name),
			"real_name": name}}, ""
	case "chat.postMessage", "chat.update":
		return s.post(r.Form, method == "chat.update")
	case "chat.delete":
		i := s.find(r.Form)
		if i < 0 {
			return nil, "message_not_found"
		}
		s.messages[i].Removed = true
		s.changed()
		return map[string]any{}, ""
	case "reactions.add":
		line := r.Form.Get("channel") + " " + r.Form.Get("timestamp") + " " + r.Form.Get("name")
		if slices.Contains(s.reactions, line) {
			return nil, "already_reacted"
		}
		s.reactions = append(s.reactions, line)
		return map[string]any{}, ""
	}
	return s.fileMethod(r.Form, method)
}

// find returns the position of the message that a form names, or -1.
func (s *Server) find(form url.Values) int {
	return slices.IndexFunc(s.messages, func(m Message) bool {
		return m.Channel == form.Get("channel") && m.TS == form.Get("ts") && !m.Removed
	})
}

// limits of Slack.
const (
	longestText    = 40_000
	longestSection = 3000
	longestLabel   = 75
	longestValue   = 2000
)

// post sends or edits a message.
func (s *Server) post(form url.Values, edits bool) (map[string]any, code) {
	m := Message{Channel: form.Get("channel"), Thread: form.Get("thread_ts"), Text: form.Get("text"),
		Plain: form.Get("mrkdwn") == "false"}
	if c := s.checkChannel(m.Channel, m.Thread); c != "" {
		return nil, c
	}
	if c := m.readBlocks(form.Get("blocks")); c != "" {
		return nil, c
	}
	var about struct {
		Payload struct {
			ReplyTo string `json:"reply_to"`
		} `json:"event_payload"`
	}
	if text := form.Get("metadata"); text != "" && json.Unmarshal([]byte(text), &about) != nil {
		return nil, "invalid_metadata_format"
	}
	m.ReplyTo = about.Payload.ReplyTo
	switch {
	case m.Text == "":
		return nil, "no_text"
	case utf8.RuneCountInString(m.Text) > longestText:
		return nil, "msg_too_long"
	}
	if !edits {
		m.TS = s.now()
		s.messages = append(s.messages, m)
	} else {
		i := s.find(form)
		if i < 0 {
			return nil, "message_not_found"
		}
		old := s.messages[i]
		m.TS, m.Thread, m.ReplyTo, m.File, m.Edited = old.TS, old.Thread, old.ReplyTo, old.File, true
		s.messages[i] = m
	}
	s.changed()
	return map[string]any{"channel": m.Channel, "ts": m.TS}, ""
}

// readBlocks takes the text and the buttons from the blocks of a message.
func (m *Message) readBlocks(text string) code {
	var blocks []struct {
		Type string `json:"type"`
		Text *struct {
			Type, Text string
		} `json:"text"`
		Elements []struct {
			Type   string `json:"type"`
			Action string `json:"action_id"`
			Value  string `json:"value"`
			Text   struct {
				Type, Text string
			} `json:"text"`
		} `json:"elements"`
	}
	if text != "" && json.Unmarshal([]byte(text), &blocks) != nil {
		return "invalid_blocks_format"
	}
	actions := map[string]bool{}
	for _, b := range blocks {
		switch {
		case b.Type == "section" && b.Text != nil && b.Text.Text != "" &&
			utf8.RuneCountInString(b.Text.Text) <= longestSection:
			m.Text, m.Plain = b.Text.Text, b.Text.Type == "plain_text"
		case b.Type == "actions" && len(b.Elements) > 0 && len(b.Elements) <= 25:
		default:
			return "invalid_blocks"
		}
		for _, e := range b.Elements {
			if e.Type != "button" || e.Text.Type != "plain_text" || e.Action == "" || actions[e.Action] ||
				utf8.RuneCountInString(e.Text.Text) > longestLabel || len(e.Value) > longestValue {
				return "invalid_blocks"
			}
			actions[e.Action] = true
			m.Buttons = append(m.Buttons, Button{e.Text.Text, e.Action, e.Value})
		}
	}
	return ""
}

// checkChannel checks the target of a message.
func (s *Server) checkChannel(channel, thread string) code {
	switch {
	case slices.Contains(s.archived, channel):
		return "is_archived"
	case channel == "" || !strings.ContainsAny(channel[:1], "CDG"):
		return "channel_not_found"
	case thread != "" && !strings.Contains(thread, "."):
		return "invalid_thread_ts"
	}
	return ""
}

// fileMethod carries out a method about files.
func (s *Server) fileMethod(form url.Values, method string) (map[string]any, code) {
	switch method {
	case "files.info":
		f := s.files[form.Get("file")]
		if f == nil {
			return nil, "file_not_found"
		}
		at := f.URL
		if at == "" {
			at = s.host + "/files-pri/" + f.ID
		}
		return map[string]any{"file": map[string]any{"id": f.ID, "name": f.Name, "size": len(f.Data),
			"url_private_download": at}}, ""
	case "files.getUploadURLExternal":
		if form.Get("filename") == "" || form.Get("length") == "" || form.Get("length") == "0" {
			return nil, "invalid_arguments"
		}
		f := &File{ID: fmt.Sprintf("F0UP%d", len(s.files)+1), Name: form.Get("filename")}
		s.files[f.ID] = f
		return map[string]any{"upload_url": s.host + "/upload/" + f.ID, "file_id": f.ID}, ""
	case "files.completeUploadExternal":
		var list []struct{ ID, Title string }
		if json.Unmarshal([]byte(form.Get("files")), &list) != nil || len(list) != 1 || s.files[list[0].ID] == nil {
			return nil, "invalid_arguments"
		}
		if c := s.checkChannel(form.Get("channel_id"), form.Get("thread_ts")); c != "" {
			return nil, c
		}
		m := Message{Channel: form.Get("channel_id"), Thread: form.Get("thread_ts"), Text: form.Get("initial_comment"),
			TS: list[0].ID, File: s.files[list[0].ID]}
		s.messages = append(s.messages, m)
		s.changed()
		return map[string]any{"files": []any{map[string]any{"id": list[0].ID, "title": list[0].Title}}}, ""
	}
	return nil, "unknown_method"
}

// serveUpload accepts the content of a file.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	body := io.Reader(r.Body)
	if part, _, err := r.FormFile("file"); err == nil { // a form instead of the bytes alone
		body = part
	}
	b, err := io.ReadAll(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[id]; err == nil && f != nil && r.Method == http.MethodPost {
		f.Data = b
		_, _ = fmt.Fprintf(w, "OK - %d", len(b)) // fails only if the client has disconnected
		return
	}
	http.Error(w, "no such upload", http.StatusNotFound)
}

// serveFile returns the content of a file to the bot. Anyone else gets the page for a login, as on Slack.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, id string) {
	var f Fault
	if s.Fault != nil {
		f = s.Fault("file")
	}
	s.mu.Lock()
	file := s.files[id]
	s.mu.Unlock()
	switch {
	case f.Drop || f.Lose:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		fail(w, f)
	case file == nil:
		http.NotFound(w, r)
	case r.Header.Get("Authorization") != "Bearer "+BotToken:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title>") // fails only if the client has disconnected
	case f.Half:
		w.Header().Set("Content-Length", strconv.Itoa(len(file.Data)+1000))
		_, _ = w.Write(file.Data[:len(file.Data)/2])
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(file.Data)))
		_, _ = w.Write(file.Data) // fails only if the client has disconnected
	}
}
