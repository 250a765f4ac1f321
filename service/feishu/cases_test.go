package feishu_test

import (
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/feishu/feishutest"
)

// TestCases runs the table of all channels.
func TestCases(t *testing.T) { channeltest.Run(t, feishutest.Subject()) }
