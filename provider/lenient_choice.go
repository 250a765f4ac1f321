package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// soundChoices returns data, an object, without the values of its configOptions that have not the schema's form, and
// their places. It comes before everything is decoded: of a list with one such value the SDK's union decodes nothing,
// and does not say so.
func soundChoices(data json.RawMessage) (kept json.RawMessage, dropped []string) {
	const list = "configOptions"
	var members, option map[string]json.RawMessage
	var options []json.RawMessage
	if !bytes.Contains(data, []byte(list)) || json.Unmarshal(data, &members) != nil || json.Unmarshal(members[list], &options) != nil {
		return data, nil
	}
	for i := range options {
		var values []json.RawMessage
		if option = nil; json.Unmarshal(options[i], &option) != nil || json.Unmarshal(option["options"], &values) != nil {
			continue
		}
		good, bad := soundValues(values, fmt.Sprintf("%s[%d].options", list, i))
		if dropped = append(dropped, bad...); len(bad) > 0 {
			option["options"], _ = json.Marshal(good) // all of it was JSON
			options[i], _ = json.Marshal(option)
		}
	}
	if len(dropped) == 0 {
		return data, nil
	}
	members[list], _ = json.Marshal(options)
	kept, _ = json.Marshal(members)
	return kept, dropped
}

// choice is a value of an option. A group of values has options.
type choice struct {
	Value       string          `json:"value"`
	Name        string          `json:"name"`
	Description *string         `json:"description,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// soundValues returns the values of a list that can be chosen, those of groups among them, and the places of others.
// Where all are sound the list stays as it is, with its groups.
func soundValues(list []json.RawMessage, at string) (good []choice, bad []string) {
	good = []choice{}
	groups := 0
	for i, item := range list {
		place := fmt.Sprintf("%s[%d]", at, i)
		var members map[string]json.RawMessage
		_ = json.Unmarshal(item, &members) // of what is no object nothing is there
		var group []json.RawMessage
		if json.Unmarshal(members["options"], &group) == nil && members["value"] == nil {
			groups++
			if name := ""; json.Unmarshal(members["group"], &name) != nil || json.Unmarshal(members["name"], &name) != nil {
				bad = append(bad, place+" (the name of a group)")
			}
			inner, out := soundValues(group, place+".options")
			good, bad = append(good, inner...), append(bad, out...)
			continue
		}
		var c choice
		err := json.Unmarshal(item, &c)
		if err != nil { // what need not be there
			_ = json.Unmarshal(members["value"], &c.Value)
			_ = json.Unmarshal(members["name"], &c.Name)
			c.Description, c.Meta = nil, nil
		}
		if c.Value == "" || members == nil {
			bad = append(bad, place)
			continue
		}
		if err != nil || c.Name == "" {
			bad = append(bad, place+" (the form of its name or description)")
		}
		c.Name = cmp.Or(c.Name, c.Value)
		good = append(good, c)
	}
	if groups > 0 && groups < len(list) {
		bad = append(bad, at+" (groups beside values)")
	}
	return good, bad
}
