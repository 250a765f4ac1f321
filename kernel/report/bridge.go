package report

import (
	"fmt"
	"strings"
)

// bridged is what the events of the messaging bridge have in common, as far as a line tells
// it: package service, which writes them, stands above this one.
type bridged struct {
	PID        int      `json:"pid"`
	Channels   []string `json:"channels"`
	Why        string   `json:"why"`
	Channel    string   `json:"channel"`
	Contact    string   `json:"contact"`
	Name       string   `json:"name"`
	Rights     []string `json:"rights"`
	Error      string   `json:"error"`
	Cursor     string   `json:"cursor"`
	By         string   `json:"by"`
	Kind       string   `json:"kind"`
	Text       string   `json:"text"`
	How        string   `json:"how"`
	Detail     string   `json:"detail"`
	ID         string   `json:"id"`
	Attempt    int      `json:"attempt"`
	Unknown    bool     `json:"unknown"`
	Final      bool     `json:"final"`
	Unrecorded int      `json:"unrecorded"`
}

func (p bridged) who() string { return p.Channel + ":" + p.Contact }

func (p bridged) started() string {
	return fmt.Sprintf("process %d serves %s", p.PID, strings.Join(p.Channels, ", "))
}

func (p bridged) fault() string {
	if p.Error == "" {
		return p.Channel
	}
	return p.Channel + ": " + beginning(p.Error)
}

func (p bridged) opened() string {
	return "by " + p.By + ", for " + strings.Join(p.Rights, ", ")
}

func (p bridged) paired() string {
	return strings.TrimSpace(p.who()+" "+p.Name) + " may " + strings.Join(p.Rights, ", ")
}

func (p bridged) ignored() string {
	if p.Unrecorded > 0 {
		return fmt.Sprintf("%s, and %d before", p.who(), p.Unrecorded)
	}
	return p.who()
}

func (p bridged) message() string {
	return fmt.Sprintf("%s %s: %s", p.Kind, p.who(), beginning(p.Text))
}

func (p bridged) finished() string {
	if p.Detail == "" {
		return p.How
	}
	return p.How + ": " + beginning(p.Detail)
}

func (p bridged) failed() string {
	text := beginning(p.Error)
	if p.Unknown {
		text += "; it may have been sent"
	}
	if p.Final {
		text += "; it is given up"
	}
	return text
}
