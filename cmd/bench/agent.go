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

// agent is an ACP agent that writes stamped updates: "flood N" writes N updates of 200
// bytes, "stamp N" writes N updates 2 ms apart that hold the time, anything else is
// answered at once. Without ACP around it, it is the bare line source, too.
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
			play(out, req.Params.Prompt[len(req.Params.Prompt)-1].Text)
			result = `{"stopReason":"end_turn"}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result)
		if out.Flush() != nil {
			return
		}
	}
}

const updateForm = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}` + "\n"

func play(out *bufio.Writer, script string) {
	verb, arg, _ := strings.Cut(script, " ")
	n, _ := strconv.Atoi(arg)
	switch verb {
	case "flood":
		line := fmt.Sprintf(updateForm, strings.Repeat("x", 200-len(updateForm)+2))
		for range n {
			out.WriteString(line)
		}
	case "stamp":
		for range n {
			fmt.Fprintf(out, updateForm, fmt.Sprintf("%019d", time.Now().UnixNano()))
			out.Flush()
			time.Sleep(2 * time.Millisecond)
		}
	}
}
