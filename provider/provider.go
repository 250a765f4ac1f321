// Package provider is the wire between Perlica and an agent. It starts the agent's process, speaks the Agent
// Client Protocol (ACP, version 1) over the process's standard input and output, and ends the process.
//
// The package makes four promises. It hands every line in both directions to a [Recorder], byte for byte and
// in wire order, before it does anything else with the line. No second session/prompt of a run leaves. Every
// request of an agent gets an answer. No process is left running. The package never touches files or
// terminals for an agent. It does not know the log, the policy or the questions: it reports lines and asks
// through two small interfaces, which the kernel implements. ParseMessage looks only at the members of a JSON-RPC
// message and never at the parameters of a method.
//
// The central idea is the tap. One goroutine reads the agent's output, and one goroutine writes its input.
// Every line passes through one of the two. The reader itself answers requests and matches responses. The SDK
// supplies the types of ACP, but not its connection.
package provider

// Recorder keeps the lines. An error means that the line could not be recorded. The connection then ends the
// agent without another byte to it.
type Recorder interface {
	// Sent is called with a line before its first byte is written.
	Sent(Frame) error
	// Received is called with each line of the agent before Perlica acts on the line. It may block, which
	// slows the agent down through its pipe.
	Received(Frame) error
}

// Client is told about the agent's messages and is asked for permissions. The goroutine that reads the
// agent's output calls the methods one at a time, in wire order. While a method blocks, that goroutine reads
// nothing.
type Client interface {
	// Update reports a session/update of the connection's session.
	Update(Update)
	// RequestPermission delivers a question. It must return soon. Any goroutine may give the answer later, through
	// the methods of PermissionRequest.
	RequestPermission(*PermissionRequest)
	// RefusedPermission reports a question that Perlica refused before it could ask a person.
	RefusedPermission(ToolCall)
	// Blocked reports a request that Perlica refused with an error.
	Blocked(BlockedRequest)
	// SendHTTP decides whether a model agent may send the HTTP request that it described. It returns nil
	// after the recorded description is on disk.
	SendHTTP() error
	// Warning reports a fault that is not fatal.
	Warning(Warning)
	// Drained is called when no complete line is buffered. Pending updates may be shown now.
	Drained()
}

// BlockedRequest is a request for something that Perlica does not do.
type BlockedRequest struct {
	Method string
	ID     string // the JSON-RPC id as it was written
	Params []byte
}

// Warning is about a line that Perlica could not act on. The line itself is on record.
type Warning struct {
	Subtype string // "malformed_line", "unknown_response", "foreign_session", …
	Detail  string
}
