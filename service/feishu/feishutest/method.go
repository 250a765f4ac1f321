package feishutest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// failure is the answer to a refused call.
type failure struct {
	status, code int
	msg          string
}

// call carries out a call. The caller holds mu.
type call func(s *Server, r *http.Request) (map[string]any, *failure)

// handler returns the handler of the API and the sockets.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern, name, scope string, do call) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, name, scope, do) })
	}
	const im = "/open-apis/im/v1/"
	mux.HandleFunc("/ws", s.serveSocket)
	add("POST /callback/ws/endpoint", "endpoint", "", (*Server).endpoint)
	add("POST /open-apis/auth/v3/tenant_access_token/internal", "token", "", (*Server).newToken)
	add("GET /open-apis/bot/v3/info", "bot", "", (*Server).bot)
	add("GET /open-apis/application/v6/scopes", "scopes", "", (*Server).grants)
	add("GET /open-apis/application/v6/applications/{id}", "app", "application:application:self_manage", (*Server).app)
	add("GET /open-apis/contact/v3/users/{id}", "user", "contact:user.base:readonly", (*Server).user)
	add("POST "+im+"messages", "send", "im:message", (*Server).create)
	add("POST "+im+"messages/{id}/reply", "send", "im:message", (*Server).reply)
	add("PATCH "+im+"messages/{id}", "edit", "im:message", (*Server).edit)
	add("DELETE "+im+"messages/{id}", "remove", "im:message", (*Server).remove)
	add("POST "+im+"messages/{id}/reactions", "react", "im:message", (*Server).react)
	add("GET "+im+"messages/{id}/resources/{key}", "resource", "im:resource", nil)
	add("POST "+im+"images", "upload", "im:resource", (*Server).upload)
	add("POST "+im+"files", "upload", "im:resource", (*Server).upload)
	return mux
}

// serve makes a call with the next fault.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, name, scope string, do call) {
	s.mu.Lock()
	s.calls[name]++
	s.changed()
	s.mu.Unlock()
	var f Fault
	if s.Fault != nil {
		f = s.Fault(name)
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	case f.Late:
	case f.Status != 0:
		fail(w, f)
		return
	case f.Code != 0:
		respond(w, http.StatusBadRequest, map[string]any{"code": f.Code, "msg": "refused"})
		return
	}
	s.mu.Lock()
	no := s.authorize(r, name, scope)
	var body map[string]any
	if no == nil && do != nil {
		body, no = do(s, r)
		s.changed()
	}
	s.mu.Unlock()
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Late:
		fail(w, f)
	case no != nil:
		respond(w, no.status, map[string]any{"code": no.code, "msg": no.msg})
	case do == nil:
		s.serveResource(w, r, f)
	case f.Half:
		half(w, []byte(`{"code":0,"data":{"message_id":"om_`), 1000)
	default:
		body["code"], body["msg"] = 0, "success"
		respond(w, http.StatusOK, body)
	}
}

// fail answers with a status.
func fail(w http.ResponseWriter, f Fault) {
	if f.Reset > 0 {
		w.Header().Set("x-ogw-ratelimit-limit", "100")
		w.Header().Set("x-ogw-ratelimit-reset", strconv.Itoa(int(f.Reset.Seconds())))
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Say) // fails only if the client has disconnected
}

// half cuts the connection in the middle of an answer of a size.
func half(w http.ResponseWriter, b []byte, size int) {
	w.Header().Set("Content-Length", strconv.Itoa(size))
	_, _ = w.Write(b)
	_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
	panic(http.ErrAbortHandler)
}

// authorize checks the token and the scope of a call. The caller holds mu.
func (s *Server) authorize(r *http.Request, name, scope string) *failure {
	if name == "endpoint" || name == "token" {
		return nil
	}
	until, ok := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !ok || time.Now().After(until):
		return &failure{http.StatusBadRequest, 99991663, "Invalid access token for authorization."}
	case scope != "" && !slices.Contains(s.Scopes, scope):
		return &failure{http.StatusBadRequest, 99991672, "Access denied. A scope is required: [" + scope + "]"}
	}
	return nil
}

// credentials checks the id and the secret of the app.
func (s *Server) credentials(id, secret string) bool {
	return id == AppID && secret == Secret && !s.revoked
}

func (s *Server) endpoint(r *http.Request) (map[string]any, *failure) {
	var in struct{ AppID, AppSecret string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || !s.credentials(in.AppID, in.AppSecret) || !s.Published {
		return nil, &failure{http.StatusOK, 1000040345, "app_id or app_secret is invalid"}
	}
	at := "ws" + strings.TrimPrefix(s.URL, "http") + "/ws?device_id=1&service_id=" + strconv.Itoa(serviceID) +
		"&access_key=secret-ticket"
	return map[string]any{"data": map[string]any{"URL": at, "ClientConfig": map[string]any{"PingInterval": 120,
		"ReconnectCount": -1, "ReconnectInterval": 120, "ReconnectNonce": 30}}}, nil
}

func (s *Server) newToken(r *http.Request) (map[string]any, *failure) {
	var in struct {
		ID     string `json:"app_id"`
		Secret string `json:"app_secret"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || !s.credentials(in.ID, in.Secret) {
		return nil, &failure{http.StatusOK, 10014, "app secret invalid"}
	}
	text := s.next("t-secret-token-")
	s.tokens[text] = time.Now().Add(s.Expire)
	return map[string]any{"tenant_access_token": text, "expire": int(s.Expire.Seconds())}, nil
}

func (s *Server) bot(*http.Request) (map[string]any, *failure) {
	return map[string]any{"bot": map[string]any{"activate_status": s.Status, "app_name": "Perlica", "open_id": Bot}}, nil
}

func (s *Server) grants(*http.Request) (map[string]any, *failure) {
	list := []any{map[string]any{"scope_name": "im:chat", "grant_status": 2}}
	for _, name := range s.Scopes {
		list = append(list, map[string]any{"scope_name": name, "grant_status": 1})
	}
	return map[string]any{"data": map[string]any{"scopes": list}}, nil
}

func (s *Server) app(*http.Request) (map[string]any, *failure) {
	return map[string]any{"data": map[string]any{"app": map[string]any{"app_id": AppID,
		"event":         map[string]any{"subscription_type": s.Mode, "subscribed_events": s.Events},
		"callback_info": map[string]any{"callback_type": s.Mode, "subscribed_callbacks": s.Callbacks}}}}, nil
}

func (s *Server) user(r *http.Request) (map[string]any, *failure) {
	name, ok := s.people[r.PathValue("id")]
	if !ok || r.URL.Query().Get("user_id_type") != "open_id" {
		return nil, &failure{http.StatusBadRequest, 41050, "no user authority error"}
	}
	return map[string]any{"data": map[string]any{"user": map[string]any{"name": name}}}, nil
}

// sending is the body of a request to send a message.
type sending struct {
	Receiver string `json:"receive_id"`
	Type     string `json:"msg_type"`
	Content  string `json:"content"`
	InThread bool   `json:"reply_in_thread"`
	Key      string `json:"uuid"`
}

var invalid = &failure{http.StatusBadRequest, 230001, "Your request contains an invalid request parameter."}

func (s *Server) create(r *http.Request) (map[string]any, *failure) {
	var in sending
	prefix := map[string]string{"open_id": "ou_", "chat_id": "oc_"}[r.URL.Query().Get("receive_id_type")]
	if json.NewDecoder(r.Body).Decode(&in) != nil || prefix == "" || !strings.HasPrefix(in.Receiver, prefix) ||
		in.InThread {
		return nil, invalid
	}
	return s.post(in, Message{Chat: in.Receiver})
}

func (s *Server) reply(r *http.Request) (map[string]any, *failure) {
	var in sending
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Receiver != "" {
		return nil, invalid
	}
	m := Message{ReplyTo: r.PathValue("id")}
	chat, ok := s.heard[m.ReplyTo]
	if i := s.find(m.ReplyTo); i >= 0 {
		chat, ok = s.messages[i].Chat, true
	}
	if !ok {
		return nil, &failure{http.StatusBadRequest, 230011, "The message was withdrawn."}
	}
	if m.Chat = chat; in.InThread {
		m.Thread = m.ReplyTo
	}
	return s.post(in, m)
}

// find returns the position of a message that the bot has sent, or -1.
func (s *Server) find(id string) int {
	return slices.IndexFunc(s.messages, func(m Message) bool { return m.ID == id && !m.Removed })
}

// post sends a message.
func (s *Server) post(in sending, m Message) (map[string]any, *failure) {
	switch {
	case len(in.Key) > 50:
		return nil, invalid
	case slices.Contains(s.deleted, m.Chat):
		return nil, &failure{http.StatusBadRequest, 230013, "Bot has NO availability to this user."}
	case in.Key != "" && s.keys[in.Key] != "":
		return map[string]any{"data": map[string]any{"message_id": s.keys[in.Key]}}, nil
	}
	if no := m.read(in, s.files); no != nil {
		return nil, no
	}
	m.ID = s.next("om_")
	if in.Key != "" {
		s.keys[in.Key] = m.ID
	}
	s.messages = append(s.messages, m)
	return map[string]any{"data": map[string]any{"message_id": m.ID, "msg_type": m.kind}}, nil
}

// read takes the content of a message.
func (m *Message) read(in sending, files map[string]*File) *failure {
	m.kind = in.Type
	var key struct {
		File  string `json:"file_key"`
		Image string `json:"image_key"`
	}
	switch in.Type {
	case "interactive":
		return m.readCard(in.Content)
	case "file", "image":
		if json.Unmarshal([]byte(in.Content), &key) != nil {
			return invalid
		}
		m.File = files[key.File+key.Image]
		if m.File == nil || m.File.Image != (in.Type == "image") {
			return &failure{http.StatusBadRequest, 230017, "Bot is NOT the owner of the resource."}
		}
		return nil
	}
	return invalid
}

// readCard takes the text and the buttons of a card.
func (m *Message) readCard(text string) *failure {
	bad := &failure{http.StatusBadRequest, 230099, "Failed to create card content"}
	var k struct {
		Schema string `json:"schema"`
		Config struct {
			Shared bool `json:"update_multi"`
		} `json:"config"`
		Body struct {
			Elements []struct {
				Tag, Content string
				Text         struct{ Tag, Content string }
				Behaviors    []struct {
					Type  string
					Value map[string]string
				}
			} `json:"elements"`
		} `json:"body"`
	}
	switch {
	case len(text) > 30<<10:
		return &failure{http.StatusBadRequest, 230025, "The length of the message content reaches its limit."}
	case json.Unmarshal([]byte(text), &k) != nil || k.Schema != "2.0" || !k.Config.Shared || len(k.Body.Elements) > 200:
		return bad
	}
	m.Text, m.Buttons = "", nil
	for _, e := range k.Body.Elements {
		switch {
		case e.Tag == "markdown":
			m.Text, m.Plain = e.Content, false
		case e.Tag == "div" && e.Text.Tag == "plain_text":
			m.Text, m.Plain = e.Text.Content, true
		case e.Tag == "button" && e.Text.Tag == "plain_text" && len(e.Behaviors) == 1 &&
			e.Behaviors[0].Type == "callback" && utf8.RuneCountInString(e.Text.Content) <= 100:
			m.Buttons = append(m.Buttons, Button{e.Text.Content, e.Behaviors[0].Value})
		default:
			return bad
		}
	}
	return nil
}

func (s *Server) edit(r *http.Request) (map[string]any, *failure) {
	var in sending
	i := s.find(r.PathValue("id"))
	if json.NewDecoder(r.Body).Decode(&in) != nil || i < 0 || s.messages[i].kind != "interactive" {
		return nil, invalid
	}
	// Feishu undoes an edit of a card that comes before the answer to the press.
	for _, e := range s.events {
		if p, ok := e.Body.(map[string]any)["context"].(map[string]any); ok && !e.Acknowledged && e.on != nil &&
			p["open_message_id"] == s.messages[i].ID {
			return map[string]any{}, nil
		}
	}
	m := s.messages[i]
	if no := m.readCard(in.Content); no != nil {
		return nil, no
	}
	m.Edited = true
	s.messages[i] = m
	return map[string]any{}, nil
}

func (s *Server) remove(r *http.Request) (map[string]any, *failure) {
	i := s.find(r.PathValue("id"))
	if i < 0 {
		return nil, &failure{http.StatusBadRequest, 230110, "Action unavailable as the message has been deleted."}
	}
	s.messages[i].Removed = true
	return map[string]any{}, nil
}

func (s *Server) react(r *http.Request) (map[string]any, *failure) {
	var in struct {
		Type struct {
			Emoji string `json:"emoji_type"`
		} `json:"reaction_type"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Type.Emoji == "" {
		return nil, &failure{http.StatusBadRequest, 231001, "reaction type is invalid."}
	}
	s.reactions = append(s.reactions, r.PathValue("id")+" "+in.Type.Emoji)
	return map[string]any{}, nil
}

// upload accepts the content of a file.
func (s *Server) upload(r *http.Request) (map[string]any, *failure) {
	image := strings.HasSuffix(r.URL.Path, "/images")
	part, prefix, want := "file", "file_v3_", r.FormValue("file_type") == "stream" && r.FormValue("file_name") != ""
	if image {
		part, prefix, want = "image", "img_v3_", r.FormValue("image_type") == "message"
	}
	p, head, err := r.FormFile(part)
	if err != nil || !want || head.Size == 0 {
		return nil, &failure{http.StatusBadRequest, 234001, "Invalid request param."}
	}
	b, err := io.ReadAll(p)
	if err != nil {
		return nil, &failure{http.StatusBadRequest, 234001, "Invalid request param."}
	}
	f := &File{Key: s.next(prefix), Name: r.FormValue("file_name"), Image: image, Data: b}
	s.files[f.Key] = f
	return map[string]any{"data": map[string]any{part + "_key": f.Key}}, nil
}

// serveResource returns the content of a file.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, f Fault) {
	s.mu.Lock()
	file := s.files[r.PathValue("key")]
	_, heard := s.heard[r.PathValue("id")]
	s.mu.Unlock()
	kind := map[bool]string{true: "image", false: "file"}
	switch {
	case file == nil || !heard || r.URL.Query().Get("type") != kind[file.Image]:
		respond(w, http.StatusBadRequest, map[string]any{"code": 234003, "msg": "File not in msg."})
		return
	case f.Half:
		half(w, file.Data[:len(file.Data)/2], len(file.Data)+1000)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="file"`)
	w.Header().Set("Content-Length", strconv.Itoa(len(file.Data)))
	_, _ = w.Write(file.Data) // fails only if the client has disconnected
}
