package provider

import "github.com/coder/acp-go-sdk"

// introduction is the params of initialize. The SDK's type has no capabilities of sessions yet.
type introduction struct {
	Capabilities capabilities       `json:"clientCapabilities"`
	Info         acp.Implementation `json:"clientInfo"`
	Version      int                `json:"protocolVersion"`
}

// capabilities is what an agent hears that it may send. No files and no terminals are among it: Perlica
// reads no file and runs no command.
type capabilities struct {
	Meta    map[string]any               `json:"_meta,omitempty"`
	Auth    acp.AuthCapabilities         `json:"auth"`
	Forms   *acp.ElicitationCapabilities `json:"elicitation,omitempty"`
	Files   acp.FileSystemCapabilities   `json:"fs"`
	Session sessionCapabilities          `json:"session"`
}

type sessionCapabilities struct {
	Options struct {
		Boolean struct{} `json:"boolean"`
	} `json:"configOptions"`
	Notices    *struct{} `json:"notices,omitempty"`
	Compaction *struct{} `json:"compaction,omitempty"`
}

func (o *Options) capabilities(a Agent) capabilities {
	c := capabilities{Auth: acp.AuthCapabilities{Terminal: o.TerminalLogins}}
	if o.Forms {
		c.Forms = &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{}, Url: &acp.ElicitationUrlCapabilities{}}
	}
	if o.Notices {
		c.Session.Notices, c.Session.Compaction = &struct{}{}, &struct{}{}
	}
	if a.Model {
		c.Meta = map[string]any{"perlica.dev": map[string]bool{"http": true}}
	}
	return c
}
