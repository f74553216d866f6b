package jsonhttp

import (
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
