package provider

import "github.com/coder/acp-go-sdk"

// introduction is the params of initialize. The SDK's type does not have the session capabilities yet.
type introduction struct {
	Capabilities capabilities       `json:"clientCapabilities"`
	Info         acp.Implementation `json:"clientInfo"`
	Version      int                `json:"protocolVersion"`
}

// capabilities tells the agent the requests that Perlica accepts. It offers no files and no terminals, because Perlica
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
		c.Forms = &acp.ElicitationCapabilities{Form: &acp.ElicitationFormCapabilities{},
			Url: &acp.ElicitationUrlCapabilities{}}
	}
	if o.Notices {
		c.Session.Notices, c.Session.Compaction = &struct{}{}, &struct{}{}
	}
	if a.Model {
		c.Meta = map[string]any{"perlica.dev": map[string]bool{"http": true}}
	}
	return c
}
