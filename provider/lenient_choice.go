package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coder/acp-go-sdk"
)

// soundChoices returns data with only those values of its configOptions that the SDK can decode, and the
// places of the other values. It runs before data is decoded. If one value of a list has the wrong form, the
// SDK's union type decodes nothing or a wrong type, and reports no error.
func soundChoices(data json.RawMessage) (kept json.RawMessage, dropped []string) {
	const list = "configOptions"
	var members, option map[string]json.RawMessage
	var options []json.RawMessage
	if !bytes.Contains(data, []byte(list)) || json.Unmarshal(data, &members) != nil ||
		json.Unmarshal(members[list], &options) != nil {
		return data, nil
	}
	for i := range options {
		var values []json.RawMessage
		if option = nil; json.Unmarshal(options[i], &option) != nil || json.Unmarshal(option["options"], &values) != nil {
			continue
		}
		place := fmt.Sprintf("%s[%d].options", list, i)
		good, bad := soundValues(values, place, true)
		var decoded acp.SessionConfigSelectOptions
		err := json.Unmarshal(option["options"], &decoded)
		same := func(a acp.SessionConfigSelectOption, b choice) bool {
			return string(a.Value) == b.Value && a.Name == b.Name
		}
		if err == nil && slices.EqualFunc(OptionValues(decoded), good, same) {
			continue
		}
		if len(bad) == 0 {
			bad = []string{place + " (its groups)"}
		}
		dropped = append(dropped, bad...)
		option["options"], _ = json.Marshal(good) // each part was decoded from JSON
		options[i], _ = json.Marshal(option)
	}
	if len(dropped) == 0 {
		return data, nil
	}
	members[list], _ = json.Marshal(options)
	kept, _ = json.Marshal(members)
	return kept, dropped
}

// choice is a value of a config option.
type choice struct {
	Value       string         `json:"value"`
	Name        string         `json:"name"`
	Description *string        `json:"description,omitempty"`
	Meta        map[string]any `json:"_meta,omitempty"`
}

// soundValues returns the values of a list that can be chosen, including the values of groups if groups is set. The
// result "bad" names the places of the items that do not have the schema's form.
func soundValues(list []json.RawMessage, at string, groups bool) (good []choice, bad []string) {
	good = []choice{}
	for i, item := range list {
		place := fmt.Sprintf("%s[%d]", at, i)
		var members map[string]json.RawMessage
		_ = json.Unmarshal(item, &members) // an item that is not an object has no members
		var group []json.RawMessage
		if groups && members["value"] == nil && json.Unmarshal(members["options"], &group) == nil {
			inner, out := soundValues(group, place+".options", false)
			good, bad = append(good, inner...), append(bad, out...)
			continue
		}
		var c choice
		err := json.Unmarshal(item, &c)
		if err != nil { // drop the optional members
			c = choice{}
			_ = json.Unmarshal(members["value"], &c.Value)
			_ = json.Unmarshal(members["name"], &c.Name)
		}
		if c.Value == "" {
			bad = append(bad, place)
			continue
		}
		if err != nil || c.Name == "" {
			bad = append(bad, place+" (a member of it)")
		}
		c.Name = cmp.Or(c.Name, c.Value)
		good = append(good, c)
	}
	return good, bad
}
