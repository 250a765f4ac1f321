package matrix_test

import (
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/matrix/matrixtest"
)

func TestCases(t *testing.T) { channeltest.Run(t, matrixtest.Subject()) }
