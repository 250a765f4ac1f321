// Package provider is the wire: it starts an agent's process, speaks the Agent Client
// Protocol (ACP, version 1) with it over its standard input and output, and ends it.
//
// It promises that every line in either direction is handed to a [Recorder] byte for
// byte, in wire order, before anything else is done with it; that no second
// session/prompt of a run ever leaves; that every request of an agent is answered; and
// that no process is left behind. It refuses to touch files or terminals for an agent.
// It knows no log, no policy and no questions: it reports frames and asks through two
// small interfaces that the kernel implements.
//
// The one idea is the tap: one goroutine reads the agent's output, one writes its
// input, and everything that crosses passes through one of them. Requests are answered
// and responses matched on the line itself; the SDK gives the types, not the queue.
package provider

import "github.com/perlica/perlica/provider/jsonrpc"

// Recorder keeps the lines. An error means that the record cannot be written: the
// connection then ends the agent without another byte to it.
type Recorder interface {
	// Sent is called with a line before its first byte is written.
	Sent(jsonrpc.Frame) error
	// Received is called with each line of the agent before it is acted upon. It may
	// block; that slows the agent down through its pipe.
	Received(jsonrpc.Frame) error
}

// Client is asked and told what the lines mean. Its methods are called one at a time,
// in wire order, by the goroutine that reads the agent's output: while one of them
// blocks, nothing more is read.
type Client interface {
	// Update tells of a session/update of the connection's session.
	Update(Update)
	// RequestPermission hands over a question. It must return soon; the answer is
	// given later, by any goroutine, through the request's own methods.
	RequestPermission(*PermissionRequest)
	// RefusedPermission tells of a question that was refused before anybody could be asked.
	RefusedPermission(ToolCall)
	// Blocked tells of a request that was refused with an error.
	Blocked(BlockedRequest)
	// SendHTTP says whether a model agent may send the HTTP request that it has described: nil once
	// the description, whose line was recorded, is on disk.
	SendHTTP() error
	// Warning tells of something that is wrong but not fatal.
	Warning(Warning)
	// Drained tells that no more of what the agent wrote is at hand: what came may be shown
	// without waiting for company.
	Drained()
}

// BlockedRequest is a request for something that Perlica does not do.
type BlockedRequest struct {
	Method string
	ID     string // the JSON-RPC id as it was written
	Params []byte
}

// Warning is a line that could not be acted upon. The line itself is on record.
type Warning struct {
	Subtype string // "malformed_line", "unknown_response", "foreign_session", …
	Detail  string
}
