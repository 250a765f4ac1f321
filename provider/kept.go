package provider

import (
	"context"
	"slices"

	"github.com/coder/acp-go-sdk"
)

// mostPages limits the pages of a list that are requested, because an agent's list may never end.
const mostPages = 100

// KeptSessions returns the sessions that the agent stores, in the agent's order. An empty dir means the sessions of all
// directories. The result "more" means that the agent has further sessions. Only agents that announce session/list know
// the method.
func (c *Conn) KeptSessions(ctx context.Context, dir string) (list []acp.SessionInfo, more bool, err error) {
	request := acp.ListSessionsRequest{}
	if dir != "" {
		request.Cwd = &dir
	}
	var seen []string
	for range mostPages {
		var page acp.ListSessionsResponse
		if err := c.request(ctx, acp.AgentMethodSessionList, request, &page); err != nil {
			return nil, false, err
		}
		list = append(list, slices.DeleteFunc(page.Sessions, func(s acp.SessionInfo) bool { return s.SessionId == "" })...)
		next := page.NextCursor
		if next == nil || *next == "" || slices.Contains(seen, *next) {
			return list, false, nil
		}
		seen, request.Cursor = append(seen, *next), next
	}
	return list, true, nil
}

// DeleteKept makes the agent delete a stored session. Only agents that announce session/delete know the
// method.
func (c *Conn) DeleteKept(ctx context.Context, id string) error {
	return c.request(ctx, acp.AgentMethodSessionDelete, acp.UnstableDeleteSessionRequest{SessionId: acp.SessionId(id)},
		nil)
}
