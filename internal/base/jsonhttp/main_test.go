package jsonhttp

import (
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
