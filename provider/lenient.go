package provider

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"
)

// lenient decodes data into the value that v points to, by the schema's rules for clients. It skips a list item that
// has the wrong form, and it treats a member of the wrong form as absent. The result "dropped" names the places of the
// parts that were left out. The error means that no part of data could be decoded.
func lenient(data []byte, v any) (dropped []string, err error) {
	data, dropped = soundChoices(data)
	err = json.Unmarshal(data, v)
	if err != nil {
		kept, out, ok := salvage(data, reflect.TypeOf(v).Elem(), "")
		if !ok {
			return dropped, err
		}
		if len(out) == 0 { // every part is valid, so a member occurs twice
			out = []string{"members that stand there twice"}
		}
		reflect.ValueOf(v).Elem().SetZero() // remove the results of the first attempt
		dropped, err = append(dropped, out...), json.Unmarshal(kept, v)
	}
	return append(dropped, skipNameless(v)...), err
}

// salvage returns the part of a JSON value that can be decoded as t, and the places of the other parts.
func salvage(data json.RawMessage, t reflect.Type, at string) (kept json.RawMessage, dropped []string, ok bool) {
	if json.Unmarshal(data, reflect.New(t).Interface()) == nil {
		return data, nil, true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		var items, good []json.RawMessage
		if json.Unmarshal(data, &items) != nil {
			return nil, nil, false
		}
		for i, item := range items {
			place := fmt.Sprintf("%s[%d]", at, i)
			part, out, ok := salvage(item, t.Elem(), place)
			if dropped = append(dropped, out...); ok {
				good = append(good, part)
			} else {
				dropped = append(dropped, place)
			}
		}
		kept, _ = json.Marshal(append([]json.RawMessage{}, good...)) // each item was decoded before
	case reflect.Struct:
		if kept, dropped = salvageMembers(data, t, at); kept == nil {
			return nil, nil, false
		}
	default:
		return nil, nil, false
	}
	return kept, dropped, json.Unmarshal(kept, reflect.New(t).Interface()) == nil
}

// salvageMembers does the work of salvage for an object. The result "kept" is nil if data is not an object.
func salvageMembers(data json.RawMessage, t reflect.Type, at string) (kept json.RawMessage, dropped []string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return nil, nil
	}
	if at != "" {
		at += "."
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		for key, value := range members {
			if !strings.EqualFold(key, name) {
				continue
			}
			part, out, ok := salvage(value, t.Field(i).Type, at+name)
			if dropped = append(dropped, out...); ok {
				members[key] = part
			} else {
				delete(members, key)
				dropped = append(dropped, at+name)
			}
		}
	}
	kept, _ = json.Marshal(members) // each member is JSON
	return kept, dropped
}

// skipNameless removes list items without an id, because they cannot be chosen.
func skipNameless(v any) (dropped []string) {
	skip := func(n int, what string) {
		if n > 0 {
			dropped = append(dropped, fmt.Sprintf("%d of %s without an id or values", n, what))
		}
	}
	switch v := v.(type) {
	case *acp.InitializeResponse:
		n := len(v.AuthMethods)
		v.AuthMethods = slices.DeleteFunc(v.AuthMethods, func(m acp.AuthMethod) bool {
			return (m.EnvVar == nil || m.EnvVar.Id == "") && (m.Terminal == nil || m.Terminal.Id == "") &&
				(m.Agent == nil || m.Agent.Id == "")
		})
		skip(n-len(v.AuthMethods), "authMethods")
	case *offer:
		if v.Modes != nil {
			n := len(v.Modes.AvailableModes)
			v.Modes.AvailableModes = slices.DeleteFunc(v.Modes.AvailableModes,
				func(m acp.SessionMode) bool { return m.Id == "" })
			skip(n-len(v.Modes.AvailableModes), "availableModes")
		}
		n := len(v.ConfigOptions)
		v.ConfigOptions = namedOptions(v.ConfigOptions)
		skip(n-len(v.ConfigOptions), "configOptions")
	}
	return dropped
}

// namedOptions returns the options that have an id and can be encoded as JSON. A choice must have values.
func namedOptions(options []acp.SessionConfigOption) []acp.SessionConfigOption {
	return slices.DeleteFunc(options, func(o acp.SessionConfigOption) bool {
		if _, err := json.Marshal(o); err != nil {
			return true
		}
		return (o.Select == nil || o.Select.Id == "") && (o.Boolean == nil || o.Boolean.Id == "")
	})
}

// offer holds the agent's answer to a request that opens a session or sets an option.
type offer struct {
	SessionID     string                    `json:"sessionId"`
	Modes         *acp.SessionModeState     `json:"modes"`
	ConfigOptions []acp.SessionConfigOption `json:"configOptions"`
}

// decodeLenient decodes the result of a response with the function lenient and warns about the parts that were left
// out. An unreadable result sets nothing. decodeLenient returns an error only if the needed member has the wrong form.
func (c *Conn) decodeLenient(env Message, method, needed string, v any) error {
	if env.Result == nil {
		return nil
	}
	dropped, err := lenient(env.Result, v)
	if needed != "" && (err != nil || slices.Contains(dropped, needed)) {
		return c.decodeResult(env, method, reflect.New(reflect.TypeOf(v).Elem()).Interface())
	}
	if err != nil {
		dropped = []string{"all of it"}
	}
	if len(dropped) > 0 {
		c.warnClient("invalid_answer", clip("parts of the answer to "+method+
			" have not the protocol's form and are left out: "+strings.Join(dropped, ", "), 300))
	}
	return nil
}
