package webhook_test

import (
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/webhook/webhooktest"
)

// TestCases runs the table of all channels.
func TestCases(t *testing.T) { channeltest.Run(t, webhooktest.Subject()) }
