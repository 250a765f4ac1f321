package project

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/kernel/config"
)

// MCPServers parses MCP servers in the JSON format of Claude Code and other agents: an object with a member mcpServers
// that maps names to servers. It expands no variables. An unknown member is an error, because it may restrict a server.
func MCPServers(text []byte) ([]acp.McpServer, error) {
	var file struct {
		Servers map[string]*config.MCPServer `json:"mcpServers"`
	}
	if err := strict.UnmarshalObject(text, &file); err != nil {
		return nil, err
	}
	if len(file.Servers) == 0 {
		return nil, errors.New(`it names no server under "mcpServers"`)
	}
	servers := []acp.McpServer{}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		if s == nil || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("mcpServers.%s is no server", name)
		}
		s.Name = name
		if err := checkServer(s); err != nil {
			return nil, fmt.Errorf("mcpServers.%s: %w", name, err)
		}
		servers = append(servers, server(*s))
	}
	return servers, nil
}

// checkServer checks the required members of a server. If the type is missing and the server has a URL, checkServer
// sets the type http.
func checkServer(s *config.MCPServer) error {
	if s.Type == "" && s.URL != "" {
		s.Type = "http"
	}
	switch s.Type {
	case "", "stdio":
		if s.Command == "" || s.URL != "" || s.Headers != nil {
			return errors.New("a server on stdio has a command, and no url or headers")
		}
	case "http", "sse":
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("the url must be an http or https address")
		}
		if s.Command != "" || s.Args != nil || s.Env != nil {
			return fmt.Errorf("a server over %s has no command, args or env", s.Type)
		}
	default:
		return fmt.Errorf("there is no type %q: there are stdio, http and sse", s.Type)
	}
	return nil
}
