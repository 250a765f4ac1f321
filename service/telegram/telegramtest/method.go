package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/png" // decodes the photos of tests
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// Fault is the server's misbehaviour in one call.
type Fault struct {
	// Status is the HTTP status of an answer without any effect. With Late, the effect happens before this answer. 0 means
	// no such answer. An answer 429 asks the bridge to wait RetryAfter seconds.
	Status     int
	RetryAfter int
	Late       bool
	// Say is the description of the answer. If Raw is set, Say is the whole answer.
	Say string
	Raw bool
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the
	// answer.
	Drop, Lose, Half bool
	// Forget ignores the offset of getUpdates, so updates come again.
	Forget bool
}

// request holds the parameters of a method in any encoding.
type request struct {
	values map[string]any
	file   *File
}

// problem is an answer that refuses a request.
type problem struct {
	code int
	text string
}

// ServeHTTP serves the methods that the bridge uses, and files.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if at, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+s.token+"/"); ok {
		s.serveFile(w, at)
		return
	}
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+s.token+"/")
	if !ok {
		answer(w, nil, &problem{http.StatusUnauthorized, "Unauthorized"}, 0)
		return
	}
	f := s.count(method)
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	case f.Late:
	case f.Status != 0 && f.Raw:
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Say) // fails only if the client has disconnected
		return
	case f.Status != 0:
		answer(w, nil, &problem{f.Status, f.Say}, f.RetryAfter)
		return
	}
	req, err := read(r)
	if err != nil {
		answer(w, nil, &problem{http.StatusBadRequest, "Bad Request: " + err.Error()}, 0)
		return
	}
	result, p := s.do(r, method, req, f)
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Late:
		result, p = nil, &problem{f.Status, f.Say}
	case f.Half:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"ok":true,"result":{"mess`)
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	}
	answer(w, result, p, 0)
}

func (s *Server) count(method string) (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[method]
	s.calls[method]++
	close(s.changed)
	s.changed = make(chan struct{})
	if s.Fault != nil {
		f = s.Fault(method, n)
	}
	return f
}

func answer(w http.ResponseWriter, result any, p *problem, retryAfter int) {
	body := map[string]any{"ok": p == nil, "result": result}
	w.Header().Set("Content-Type", "application/json")
	if p != nil {
		body = map[string]any{"ok": false, "error_code": p.code, "description": p.text}
		if retryAfter > 0 {
			body["parameters"] = map[string]any{"retry_after": retryAfter}
		}
		w.WriteHeader(p.code)
	}
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}

func read(r *http.Request) (req request, err error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		b, err := io.ReadAll(r.Body) // to the end, so that a leaving client is noticed
		if err != nil {
			return req, err
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		return req, d.Decode(&req.values)
	}
	if err := r.ParseMultipartForm(64 << 20); err != nil {
		return req, err
	}
	req.values = map[string]any{}
	for k, v := range r.MultipartForm.Value {
		req.values[k] = v[0]
	}
	for _, h := range slices.Concat(r.MultipartForm.File["document"], r.MultipartForm.File["photo"]) {
		f, err := h.Open()
		if err != nil {
			return req, err
		}
		b, err := io.ReadAll(f)
		if err != nil {
			return req, err
		}
		req.file = &File{Name: h.Filename, Data: b}
	}
	return req, nil
}

func (r request) text(name string) string {
	switch v := r.values[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		b, _ := json.Marshal(v) // v was decoded from JSON
		return string(b)
	}
}

func (r request) number(name string) int64 {
	n, _ := strconv.ParseInt(r.text(name), 10, 64) // an invalid number is 0, which the method may refuse
	return n
}

func (s *Server) do(r *http.Request, method string, req request, f Fault) (any, *problem) {
	switch method {
	case "getMe":
		return map[string]any{"id": 1, "is_bot": true, "first_name": "Test Bot", "username": "test_bot"}, nil
	case "getUpdates":
		return s.updates(r, req, f)
	case "sendMessage", "sendDocument", "sendPhoto", "editMessageText":
		return s.send(method, req)
	case "deleteMessage":
		return s.remove(req)
	case "answerCallbackQuery", "sendChatAction":
		return true, nil
	case "setMyCommands":
		return s.menu(req)
	case "setMessageReaction":
		return s.react(req)
	case "getFile":
		return s.file(req.text("file_id"))
	}
	return nil, &problem{http.StatusNotFound, "Not Found"}
}

// updates waits for updates as long as the request says.
func (s *Server) updates(r *http.Request, req request, f Fault) (any, *problem) {
	late := time.NewTimer(time.Duration(req.number("timeout")) * time.Second)
	defer late.Stop()
	offset := req.number("offset")
	if f.Forget {
		offset = 0
	}
	for {
		s.mu.Lock()
		if offset > s.Confirmed {
			s.change(record{Confirmed: offset})
		}
		from := s.Confirmed
		if f.Forget {
			from = 1
		}
		list := []map[string]json.RawMessage{}
		for _, u := range s.Updates {
			if u.ID < from || len(list) == 100 {
				continue
			}
			one := map[string]json.RawMessage{}
			_ = json.Unmarshal(u.Body, &one) // this server encoded the body
			one["update_id"] = json.RawMessage(strconv.FormatInt(u.ID, 10))
			list = append(list, one)
		}
		changed := s.changed
		s.mu.Unlock()
		if len(list) > 0 {
			return list, nil
		}
		select {
		case <-changed:
		case <-late.C:
			return list, nil
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// send stores a new or changed message.
func (s *Server) send(method string, req request) (any, *problem) {
	m := Sent{Chat: req.number("chat_id"), Thread: req.number("message_thread_id"),
		Text: req.text("text") + req.text("caption"), ParseMode: req.text("parse_mode"),
		Silent: req.text("disable_notification") == "true", File: req.file}
	most := 4096
	switch method {
	case "sendPhoto":
		if p := asPhoto(m.File); p != nil {
			return nil, p
		}
		m.File.Photo = true
		fallthrough
	case "sendDocument":
		most = 1024
	}
	var replyTo struct {
		ID int64 `json:"message_id"`
	}
	_ = json.Unmarshal([]byte(req.text("reply_parameters")), &replyTo) // missing parameters stay 0
	m.ReplyTo = replyTo.ID
	var markup struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	_ = json.Unmarshal([]byte(req.text("reply_markup")), &markup)
	for _, row := range markup.Rows {
		m.Buttons = append(m.Buttons, row...)
	}
	switch {
	case m.Chat == 0:
		return nil, &problem{400, "Bad Request: chat not found"}
	case m.Text == "" && m.File == nil:
		return nil, &problem{400, "Bad Request: message text is empty"}
	case m.ParseMode == "HTML" && !parses(m.Text):
		return nil, &problem{400, "Bad Request: can't parse entities: Unsupported start tag at byte offset 0"}
	case len(utf16.Encode([]rune(m.Text))) > most:
		return nil, &problem{400, "Bad Request: message is too long"}
	case slices.ContainsFunc(m.Buttons, func(b Button) bool { return len(b.Data) > 64 }):
		return nil, &problem{400, "Bad Request: BUTTON_DATA_INVALID"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.gone, m.Chat) {
		return nil, &problem{403, "Forbidden: bot was blocked by the user"}
	}
	m.ID = s.Last + 1
	if method == "editMessageText" {
		i := slices.IndexFunc(s.Sent, func(old Sent) bool { return old.ID == req.number("message_id") && old.Chat == m.Chat })
		if i < 0 {
			return nil, &problem{400, "Bad Request: message to edit not found"}
		}
		old := s.Sent[i]
		if old.Text == m.Text && slices.Equal(old.Buttons, m.Buttons) {
			return nil, &problem{400, "Bad Request: message is not modified"}
		}
		m.ID, m.ReplyTo, m.Edits = old.ID, old.ReplyTo, append(slices.Clone(old.Edits), old.Text)
	}
	s.change(record{Sent: []Sent{m}, Last: m.ID})
	return map[string]any{"message_id": m.ID, "date": 1700000000, "chat": map[string]any{"id": m.Chat}, "text": m.Text},
		nil
}

// asPhoto checks a photo as https://core.telegram.org/bots/api#sendphoto describes it: at most 10 MB, at most 10,000
// for the sum of width and height, and a ratio of at most 20.
func asPhoto(f *File) *problem {
	if f == nil {
		return &problem{400, "Bad Request: there is no photo in the request"}
	}
	at, _, err := image.DecodeConfig(bytes.NewReader(f.Data))
	switch {
	case len(f.Data) > 10_000_000:
		return &problem{413, "Request Entity Too Large"}
	case err != nil:
		return &problem{400, "Bad Request: IMAGE_PROCESS_FAILED"}
	case at.Width+at.Height > 10_000, at.Width > 20*at.Height, at.Height > 20*at.Width:
		return &problem{400, "Bad Request: PHOTO_INVALID_DIMENSIONS"}
	}
	return nil
}

// remove deletes a message.
func (s *Server) remove(req request) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.Sent, func(m Sent) bool {
		return m.ID == req.number("message_id") && m.Chat == req.number("chat_id") && !m.Removed
	})
	if i < 0 {
		return nil, &problem{400, "Bad Request: message to delete not found"}
	}
	m := s.Sent[i]
	m.Removed = true
	s.change(record{Sent: []Sent{m}, Last: s.Last})
	return true, nil
}

// menu stores the commands for a language.
func (s *Server) menu(req request) (any, *problem) {
	var list []Command
	_ = json.Unmarshal([]byte(req.text("commands")), &list) // missing commands are an empty list
	for _, c := range list {
		if !commandName.MatchString(c.Command) || c.Description == "" || len(c.Description) > 256 {
			return nil, &problem{400, "Bad Request: BOT_COMMAND_INVALID"}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(record{Menus: map[string][]Command{req.text("language_code"): list}})
	return true, nil
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

// react stores a reaction on a person's message, if Telegram knows the emoji.
func (s *Server) react(req request) (any, *problem) {
	var list []struct{ Emoji string }
	_ = json.Unmarshal([]byte(req.text("reaction")), &list) // a missing reaction is an empty list
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := req.number("message_id"); {
	case len(list) != 1 || !slices.Contains([]string{"👍", "👀", "👌", "🫡"}, list[0].Emoji):
		return nil, &problem{400, "Bad Request: REACTION_INVALID"}
	case n < 1 || n > s.Last:
		return nil, &problem{400, "Bad Request: message to react not found"}
	default:
		s.change(record{Reactions: []Reaction{{req.number("chat_id"), n, list[0].Emoji}}})
		return true, nil
	}
}

var (
	tag    = regexp.MustCompile(`<(/?)(b|i|code|pre|a)(\s[^<>]*)?>`)
	entity = regexp.MustCompile(`&(lt|gt|amp|quot|#\d+);`)
)

// parses reports whether Telegram accepts the HTML of a text, as far as the bridge uses it.
func parses(text string) bool {
	var open []string
	for _, m := range tag.FindAllStringSubmatch(text, -1) {
		if m[1] == "" {
			open = append(open, m[2])
			continue
		}
		if len(open) == 0 || open[len(open)-1] != m[2] {
			return false
		}
		open = open[:len(open)-1]
	}
	return len(open) == 0 && !strings.ContainsAny(entity.ReplaceAllString(tag.ReplaceAllString(text, ""), ""), "<&")
}

func (s *Server) file(id string) (any, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.Files[id]
	most := s.MaxFile
	if most == 0 {
		most = 20 << 20
	}
	switch {
	case !ok:
		return nil, &problem{400, "Bad Request: wrong file_id"}
	case int64(len(f.Data)) > most:
		return nil, &problem{400, "Bad Request: file is too big"}
	}
	return map[string]any{"file_id": id, "file_size": len(f.Data), "file_path": "documents/" + id}, nil
}

func (s *Server) serveFile(w http.ResponseWriter, at string) {
	if f := s.count("file"); f.Drop || f.Lose {
		panic(http.ErrAbortHandler)
	} else if f.Status != 0 {
		http.Error(w, f.Say, f.Status)
		return
	}
	s.mu.Lock()
	f, ok := s.Files[strings.TrimPrefix(at, "documents/")]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(f.Data)))
	_, _ = w.Write(f.Data) // fails only if the client has disconnected
}
