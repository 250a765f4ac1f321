package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// agent is the program that writes updates. As an ACP agent it obeys these prompts: "flood N" writes N updates of 200
// bytes, and "think N" writes N thoughts of that size. "stamp N" writes N updates with the time, 2 ms apart. "ask N"
// asks N times for permission and writes the time at which it read each answer. The agent answers every other prompt
// at once. The comparisons with a bare proxy send it only prompts, without initialize and session/new.
func agent() {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if json.Unmarshal(line, &req) != nil || req.ID == nil {
			continue
		}
		result := "{}"
		switch req.Method {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}},"authMethods":[]}`
		case "session/new":
			result = `{"sessionId":"s"}`
		case "session/prompt":
			play(in, out, req.Params.Prompt[len(req.Params.Prompt)-1].Text)
			result = `{"stopReason":"end_turn"}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result)
		if out.Flush() != nil {
			return
		}
	}
}

const updateForm = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}` + "\n"

const questionForm = `{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s",` +
	`"toolCall":{"toolCallId":"t%[1]d","kind":"execute","title":"make","rawInput":{"command":"make"}},` +
	`"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}` + "\n"

func play(in *bufio.Reader, out *bufio.Writer, script string) {
	verb, arg, _ := strings.Cut(script, " ")
	n, _ := strconv.Atoi(arg)
	switch verb {
	case "flood", "think":
		line := fmt.Sprintf(updateForm, strings.Repeat("x", 200-len(updateForm)+2))
		if verb == "think" {
			line = strings.Replace(line, "message", "thought", 1)
		}
		for range n {
			out.WriteString(line)
		}
	case "stamp":
		for range n {
			fmt.Fprintf(out, updateForm, fmt.Sprintf("%019d", time.Now().UnixNano()))
			out.Flush()
			time.Sleep(2 * time.Millisecond)
		}
	case "ask":
		for i := range n {
			fmt.Fprintf(out, questionForm, 1000+i)
			out.Flush()
			if _, err := in.ReadBytes('\n'); err != nil {
				return
			}
			fmt.Fprintf(out, updateForm, fmt.Sprintf("%019d", time.Now().UnixNano()))
			out.Flush()
		}
	}
}
