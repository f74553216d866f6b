package pgcopy

import (
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }
