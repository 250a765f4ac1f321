package discord_test

import (
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/discord/discordtest"
)

// TestCases runs the table of cases of all channels.
func TestCases(t *testing.T) { channeltest.Run(t, discordtest.Subject()) }
